package plantillas

import (
	"net/url"
	"text/template/parse"
)

// known gives the functions that a file of this ending may call. The parser knows no other, so that anything else is an
// error at the start: print and printf, which write "<nil>", "map[...]" and "%!d(...)" into an email instead of failing;
// slice, which cuts letters in two; and whatever Go adds. Only the names matter to the parser.
func known(ending string) map[string]any {
	names := map[string]any{"index": index}
	for _, builtin := range []string{"and", "or", "not", "eq", "ne", "lt", "le", "gt", "ge", "len"} {
		names[builtin] = true
	}
	if ending != htmlEnding { // html/template escapes within addresses by itself
		names["urlquery"] = urlquery
	}
	return names
}

// functions are those that take the place of Go's, which would turn a missing key into nothing, and those that strict
// inserts.
func functions() map[string]any {
	return map[string]any{"index": index, "urlquery": urlquery, printed: text, looped: loop}
}

// The names of the functions that strict inserts. No file can call them, since known leaves them out.
const (
	printed = "_texto"
	looped  = "_lista"
)

// strict makes n fail where a template would print null, a list or an object, or loop over something that has no elements.
// As html/template does for its escapers, it adds a function to the end of a pipeline.
func strict(n parse.Node) {
	switch n := n.(type) {
	case *parse.ActionNode:
		if len(n.Pipe.Decl) == 0 { // else it sets a variable and prints nothing
			appendTo(n.Pipe, printed)
		}
	case *parse.RangeNode:
		appendTo(n.Pipe, looped)
	}
}

func appendTo(pipe *parse.PipeNode, function string) {
	name := parse.NewIdentifier(function).SetPos(pipe.Pos)
	pipe.Cmds = append(pipe.Cmds, &parse.CommandNode{NodeType: parse.NodeCommand, Pos: pipe.Pos, Args: []parse.Node{name}})
}

// walk visits n and the nodes within it, but not those within a pipeline.
func walk(n parse.Node, visit func(parse.Node)) {
	visit(n)
	switch n := n.(type) {
	case *parse.ListNode:
		for _, child := range n.Nodes {
			walk(child, visit)
		}
	case *parse.IfNode:
		walkBranches(&n.BranchNode, visit)
	case *parse.RangeNode:
		walkBranches(&n.BranchNode, visit)
	case *parse.WithNode:
		walkBranches(&n.BranchNode, visit)
	}
}

func walkBranches(n *parse.BranchNode, visit func(parse.Node)) {
	walk(n.List, visit)
	if n.ElseList != nil {
		walk(n.ElseList, visit)
	}
}

// index gives the element at the keys, one below the other.
func index(value any, keys ...any) (any, error) {
	for _, key := range keys {
		var err error
		if value, err = element(value, key); err != nil {
			return nil, err
		}
	}
	return value, nil
}

func urlquery(value any) (string, error) {
	s, err := text(value)
	return url.QueryEscape(s), err
}

// loop gives back what a template may loop over. A number is not among it: the data could make the loop endless.
func loop(value any) (any, error) {
	switch value.(type) {
	case []any, map[string]any, nil:
		return value, nil
	}
	return nil, fault("only a list, an object or null can be looped over")
}
