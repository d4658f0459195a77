package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// writePage writes results/README.md: where and with what it was measured, the tables, the plots and the bars.
func (b *bench) writePage(ctx context.Context) error {
	var page bytes.Buffer
	fmt.Fprintf(&page, "# Results\n\nWritten by a run of the benchmark%s on %s, which took %v. [../README.md](../README.md) says how to repeat it\n"+
		"and what is compared. The machine is never equally fast for minutes: trust ratios more than numbers.\n\n",
		map[bool]string{true: " (`-quick`)"}[b.opts.quick], b.begun.UTC().Format(time.DateOnly), time.Since(b.begun).Round(time.Second))
	if err := b.writeMachine(ctx, &page); err != nil {
		return err
	}
	b.writeBars(&page)
	for _, t := range titles {
		tables := b.tables(t.suite, t.title)
		if len(tables) == 0 {
			continue
		}
		fmt.Fprintf(&page, "\n## %s\n", t.title)
		for _, table := range tables {
			if table.title != t.title {
				fmt.Fprintf(&page, "\n%s:\n", strings.TrimPrefix(table.title, t.title+", "))
			}
			fmt.Fprintln(&page)
			table.markdown(&page)
		}
		for _, image := range b.images {
			if image.suite == t.suite {
				fmt.Fprintf(&page, "\n![%s](%s.svg)\n", image.title, image.name)
			}
		}
	}
	b.writeContenders(&page)
	return os.WriteFile(filepath.Join(b.opts.out, "README.md"), page.Bytes(), 0o644)
}

func (b *bench) writeBars(page *bytes.Buffer) {
	header := false
	for _, bar := range bars {
		v, ok := bar.value(b)
		if !ok {
			continue
		}
		if !header {
			fmt.Fprint(page, "\n## Bars\n\n| bar | what | value | bound | |\n|---|---|---:|---:|---|\n")
			header = true
		}
		fmt.Fprintf(page, "| %s | %s | %s | %s | %s |\n", bar.name, bar.what, number(v, true), bar.bound(), bar.verdict(v))
	}
}

func (b *bench) writeMachine(ctx context.Context, page *bytes.Buffer) error {
	fmt.Fprintf(page, "| | |\n|---|---|\n| machine | %s, %d cores, %s memory, %s %s |\n", processor(), runtime.NumCPU(), memory(), runtime.GOOS, kernel())
	for _, s := range []*server{b.plain, b.slow} {
		if s == nil {
			continue
		}
		took, err := s.flushTime(ctx)
		if err != nil {
			return err
		}
		fmt.Fprintf(page, "| %s disk | a commit of one small row takes %.2f ms (median of %d) |\n", s.disk, took.Seconds()*1000, flushes)
	}
	version, err := b.serverVersion(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(page, "| Postgres | %s; %s |\n| Go | %s |\n", version, strings.Join(settingsText(), ", "), runtime.Version())
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, module := range info.Deps {
			switch module.Path {
			case "github.com/jackc/pgx/v5", "github.com/riverqueue/river", "github.com/ThreeDotsLabs/watermill-sql/v4":
				fmt.Fprintf(page, "| %s | %s |\n", module.Path, module.Version)
			}
		}
	}
	return nil
}

func settingsText() []string {
	var all []string
	for name, value := range settings {
		all = append(all, name+" = "+value)
	}
	slices.Sort(all)
	return append(all, "fsync, full_page_writes and synchronous_commit on", "the rest by default")
}

func (b *bench) serverVersion(ctx context.Context) (version string, err error) {
	s := b.plain
	if s == nil {
		s = b.slow
	}
	conn, err := pgx.Connect(ctx, s.DSN())
	if err != nil {
		return "", err
	}
	defer conn.Close(ctx)
	err = conn.QueryRow(ctx, "select current_setting('server_version')").Scan(&version)
	return version, err
}

const flushes = 200

// flushTime is the median time of a lone commit.
func (s *server) flushTime(ctx context.Context) (time.Duration, error) {
	conn, err := pgx.Connect(ctx, s.DSN())
	if err != nil {
		return 0, err
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, "create table flush (n integer)"); err != nil {
		return 0, err
	}
	var samples []float64
	for n := range flushes {
		begun := time.Now()
		if _, err := conn.Exec(ctx, "insert into flush values ($1)", n); err != nil {
			return 0, err
		}
		samples = append(samples, float64(time.Since(begun)))
	}
	_, err = conn.Exec(ctx, "drop table flush")
	return time.Duration(median(samples)), err
}

// processor is the model's name where the system tells it.
func processor() string {
	if info, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(info)) {
			if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
				return strings.TrimSpace(value)
			}
		}
	}
	return runtime.GOARCH
}

func memory() string {
	if info, err := os.ReadFile("/proc/meminfo"); err == nil {
		if fields := strings.Fields(string(info)); len(fields) > 1 && fields[0] == "MemTotal:" {
			if kb, err := strconv.Atoi(fields[1]); err == nil {
				return fmt.Sprintf("%d GB", (kb+512*1024)/1024/1024)
			}
		}
	}
	return "unknown"
}

func kernel() string {
	var name syscall.Utsname
	if syscall.Uname(&name) != nil {
		return ""
	}
	var release []byte
	for _, c := range name.Release {
		if c == 0 {
			break
		}
		release = append(release, byte(c))
	}
	version, _, _ := strings.Cut(string(release), "-")
	return version
}

// writeContenders lists what took part and how it was set up.
func (b *bench) writeContenders(page *bytes.Buffer) {
	fmt.Fprint(page, "\n## Contenders\n\n| | |\n|---|---|\n")
	seen := map[string]bool{}
	for _, e := range b.entered {
		if key := e.name + e.about; !seen[key] {
			seen[key] = true
			fmt.Fprintf(page, "| %s | %s |\n", e.name, e.about)
		}
	}
}
