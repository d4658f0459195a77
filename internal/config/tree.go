package config

import (
	"slices"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// maxAliases is far more than a file needs. An alias within its own anchor, or anchors that multiply each other, take more.
const maxAliases = 10_000

// entry is a key of a mapping and its value.
type entry struct {
	key   string
	line  int
	value ast.Node
}

// entries are the keys of a mapping, those of a merge key (<<: *base) first, as far as the mapping has not its own.
func (d *decoder) entries(key string, n ast.Node) ([]entry, bool) {
	if n == nil {
		return nil, false
	}
	mapping, ok := n.(ast.MapNode)
	if !ok {
		d.fault(key, line(n), "must be keys and values, not a %s", kindOf(n))
		return nil, false
	}
	var own, merged []entry
	for it := mapping.MapRange(); it.Next(); {
		if it.Key().IsMergeKey() {
			base, ok := d.entries(key, d.resolve(key, it.Value()))
			if !ok {
				return nil, false
			}
			merged = append(merged, base...)
			continue
		}
		name := it.Key().GetToken().Value
		if slices.ContainsFunc(own, func(e entry) bool { return e.key == name }) {
			d.fault(join(key, name), line(it.Key()), "stands there twice")
			continue
		}
		own = append(own, entry{name, line(it.Key()), it.Value()})
	}
	merged = slices.DeleteFunc(merged, func(m entry) bool {
		return slices.ContainsFunc(own, func(e entry) bool { return e.key == m.key })
	})
	return append(merged, own...), true
}

// resolve follows aliases and drops anchors and tags. It gives nil for an alias that leads nowhere.
func (d *decoder) resolve(key string, n ast.Node) ast.Node {
	for {
		switch at := n.(type) {
		case *ast.AnchorNode:
			n = at.Value
		case *ast.TagNode:
			n = at.Value
		case *ast.AliasNode:
			if n = d.anchor(key, at); n == nil {
				return nil
			}
		default:
			return n
		}
	}
}

// anchor is what an alias stands for, or nil.
func (d *decoder) anchor(key string, alias *ast.AliasNode) ast.Node {
	d.aliases++
	if d.aliases == maxAliases {
		d.fault(key, line(alias), "has too many aliases, or one within its own anchor")
	}
	if d.aliases >= maxAliases {
		return nil
	}
	name := alias.Value.GetToken().Value
	target, ok := d.anchors[name]
	if !ok {
		d.fault(key, line(alias), "there is no anchor &%s", name)
		return nil
	}
	return target
}

// anchorsOf finds the anchors of a tree.
type anchorsOf map[string]ast.Node

// Visit is for ast.Walk.
func (a anchorsOf) Visit(n ast.Node) ast.Visitor {
	if anchor, ok := n.(*ast.AnchorNode); ok {
		a[anchor.Name.GetToken().Value] = anchor.Value
	}
	return a
}

func scalarText(n ast.Node) (text string, ok bool) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.LiteralNode:
		return n.Value.Value, true
	case ast.ScalarNode:
		return n.GetToken().Value, true
	}
	return "", false
}

func kindOf(n ast.Node) string {
	switch n.(type) {
	case ast.MapNode:
		return "mapping"
	case *ast.SequenceNode:
		return "list"
	}
	return "single value"
}

func line(n ast.Node) int {
	if n == nil {
		return 0
	}
	if mapping, ok := n.(*ast.MappingNode); ok && len(mapping.Values) > 0 { // its own token is its first colon
		n = mapping.Values[0].Key
	}
	return lineOf(n.GetToken())
}

func lineOf(t *token.Token) int {
	if t == nil || t.Position == nil {
		return 0
	}
	return t.Position.Line
}
