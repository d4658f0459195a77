package claim

import (
	"bytes"
	"encoding/binary"
	"math"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// fields are the values of a row, which are gone with the next one. A null is the zero value.
type fields struct {
	values [][]byte
	// types and formats are nil when all is in binary. A pool in the simple protocol, for a pooler, gives texts.
	types   *pgtype.Map
	formats []pgconn.FieldDescription
	err     error
}

// rows is what is read from: pgx's, or an answer in binary.
type rows interface {
	Next() bool
	fields() fields
	Err() error
}

type pgxRows struct{ pgx.Rows }

func (r pgxRows) fields() fields {
	return fields{values: r.RawValues(), types: r.Conn().TypeMap(), formats: r.FieldDescriptions()}
}

// inText tells whether a value is a text.
func (f *fields) inText(i int) bool {
	return f.formats != nil && f.formats[i].Format != pgtype.BinaryFormatCode
}

// readText reads a value that is a text.
func readText[T any](f *fields, i int) (v T) {
	if err := f.types.Scan(f.formats[i].DataTypeOID, pgtype.TextFormatCode, f.values[i], &v); err != nil && f.err == nil {
		f.err = err
	}
	return v
}

// json copies a jsonb. It gives nil for null.
func (f *fields) json(i int) []byte {
	value := bytes.TrimPrefix(f.values[i], jsonbVersion)
	if value == nil {
		return nil
	}
	return append(make([]byte, 0, len(value)), value...)
}

// jsonbVersion comes first in binary. No text of JSON begins with it.
var jsonbVersion = []byte{1}

// texts copies some values into one piece of memory.
func (f *fields) texts(at ...int) (texts [5]string) {
	var length int
	for _, i := range at {
		length += len(f.values[i])
	}
	var all strings.Builder
	all.Grow(length)
	for _, i := range at {
		all.Write(f.values[i])
	}
	rest := all.String()
	for n, i := range at {
		texts[n], rest = rest[:len(f.values[i])], rest[len(f.values[i]):]
	}
	return texts
}

// time gives the zero value for infinity, which time.Time cannot be.
func (f *fields) time(i int) time.Time {
	if f.values[i] == nil {
		return time.Time{}
	}
	if f.inText(i) {
		t := readText[pgtype.Timestamptz](f, i)
		if t.InfinityModifier != pgtype.Finite {
			return time.Time{}
		}
		return t.Time
	}
	micros := int64(binary.BigEndian.Uint64(f.values[i]))
	if micros == math.MaxInt64 || micros == math.MinInt64 {
		return time.Time{}
	}
	return time.UnixMicro(micros + postgresEpoch)
}

func (f *fields) integer(i int) int {
	if f.values[i] == nil {
		return 0
	}
	if f.inText(i) {
		return int(readText[int32](f, i))
	}
	return int(int32(binary.BigEndian.Uint32(f.values[i])))
}

func (f *fields) id(i int) (id [16]byte) {
	if f.inText(i) {
		return readText[[16]byte](f, i)
	}
	copy(id[:], f.values[i])
	return id
}

// postgresEpoch is 2000-01-01 UTC, from which Postgres counts, in microseconds since 1970.
const postgresEpoch = 946_684_800_000_000

// interval is d as the protocol has it in binary: microseconds, days, months.
func interval(d time.Duration) []byte {
	return append(binary.BigEndian.AppendUint64(make([]byte, 0, 16), uint64(d.Microseconds())), make([]byte, 8)...)
}
