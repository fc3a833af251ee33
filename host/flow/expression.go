package flow

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/overloads"
	"cel.dev/cel-go/common/types"

	"github.com/weftrun/weft/host/pattern"
)

// exprKind is where an expression stands: it says what the expression sees, and
// what it has to come to.
type exprKind uint8

const (
	exprCondition exprKind = iota // a bool
	exprRouter                    // a name, or a list of names
	exprLoop                      // a bool
)

// The names that expressions know.
const (
	varInput      = "input"
	varContent    = "previous_step_content"
	varOutputs    = "previous_step_outputs"
	varAdditional = "additional_data"
	varState      = "session_state"
	varChoices    = "step_choices"
	varIteration  = "current_iteration"
	varMost       = "max_iterations"
	varSuccess    = "all_success"
	varLast       = "last_step_content"
	varResults    = "step_outputs"
)

// variables are all names that expressions know, of any kind.
var variables = []string{
	varInput, varContent, varOutputs, varAdditional, varState, varChoices,
	varIteration, varMost, varSuccess, varLast, varResults,
}

// environments are those of the kinds. They are made once, as that takes about a
// millisecond, and not changed.
var environments = [...]*cel.Env{
	exprCondition: environment(),
	exprRouter:    environment(cel.Variable(varChoices, cel.ListType(cel.StringType))),
	exprLoop: environment(
		cel.Variable(varIteration, cel.IntType), cel.Variable(varMost, cel.IntType),
		cel.Variable(varSuccess, cel.BoolType), cel.Variable(varLast, cel.DynType),
		cel.Variable(varResults, cel.MapType(cel.StringType, cel.DynType))),
}

// maxNestedLoops bounds macros (all, exists, map, filter) within macros.
const maxNestedLoops = 4

// environment is what all kinds of expressions have, with more. There is no clock
// and no chance in it: the standard functions, and nothing else.
func environment(more ...cel.EnvOption) *cel.Env {
	names := cel.MapType(cel.StringType, cel.DynType)
	env, err := cel.NewEnv(append([]cel.EnvOption{
		cel.Variable(varInput, cel.DynType), cel.Variable(varContent, cel.DynType), cel.Variable(varOutputs, names),
		cel.Variable(varAdditional, names), cel.Variable(varState, names),
		cel.CrossTypeNumericComparisons(true), cel.CustomTypeAdapter(ordered{}),
		cel.ParserRecursionLimit(64), cel.ParserExpressionSizeLimit(MaxExpression),
		cel.ASTValidators(cel.ValidateRegexLiterals(), cel.ValidateDurationLiterals(), cel.ValidateTimestampLiterals(),
			cel.ValidateComprehensionNestingLimit(maxNestedLoops)),
	}, more...)...)
	if err != nil {
		panic(err) // the options are constants: any test would see it
	}
	return env
}

// expression is a compiled expression. It may be used by any number of goroutines.
type expression struct {
	text       string
	readsState bool // it may ask for the session's state
	program    cel.Program
	ast        *cel.Ast
	paths      []string // of nodes within nodes, as far as texts in it may name them
}

// compile checks an expression and compiles it. The error lists all problems with
// their positions.
func compile(text string, kind exprKind) (*expression, error) {
	if len(text) > MaxExpression {
		return nil, fmt.Errorf("it has %d bytes, and may have %d", len(text), MaxExpression)
	}
	env := environments[kind]
	checked, issues := env.Compile(text)
	if issues != nil && issues.Err() != nil {
		return nil, positions(issues)
	}
	if out := checked.OutputType(); !comesTo(out, kind) {
		want := "true or false"
		if kind == exprRouter {
			want = "a name or a list of names"
		}
		return nil, fmt.Errorf("line 1, column 1: it gives %s, but must give %s", out, want)
	}
	program, err := env.Program(checked, cel.CustomDecoratorV2(part))
	if err != nil {
		return nil, err
	}
	return &expression{text: text, readsState: strings.Contains(text, varState), program: program, ast: checked, paths: named(text)}, nil
}

// boundPatterns refuses literal patterns that are too long or too complex to match with.
func (e *expression) boundPatterns() (err error) {
	native := e.ast.NativeRep()
	ast.PreOrderVisit(native.Expr(), ast.NewExprVisitor(func(part ast.Expr) {
		if part.Kind() != ast.CallKind || part.AsCall().FunctionName() != overloads.Matches || err != nil {
			return
		}
		args := part.AsCall().Args()
		if len(args) == 0 || args[len(args)-1].Kind() != ast.LiteralKind {
			return
		}
		text, ok := args[len(args)-1].AsLiteral().(types.String)
		if !ok {
			return
		}
		if _, wrong := pattern.Compile(string(text), mostMatched); wrong != nil {
			at := native.SourceInfo().GetStartLocation(args[len(args)-1].ID())
			err = fmt.Errorf("line %d, column %d: %w", at.Line(), at.Column()+1, wrong)
		}
	}))
	return err
}

// quotedPath matches a text of an expression that may name a node within a node.
var quotedPath = regexp.MustCompile(`"[^"\\]+/[^"\\]+"|'[^'\\]+/[^'\\]+'`)

// named lists the paths of nodes that the texts of an expression may name.
func named(text string) []string {
	var paths []string
	for _, quoted := range quotedPath.FindAllString(text, -1) {
		paths = append(paths, quoted[1:len(quoted)-1])
	}
	return paths
}

// positions are the problems of an expression as one error.
func positions(issues *cel.Issues) error {
	const most = 10
	var all []string
	for i, e := range issues.Errors() {
		if i == most {
			all = append(all, "and more")
			break
		}
		all = append(all, fmt.Sprintf("line %d, column %d: %s", e.Location.Line(), e.Location.Column()+1, clip(strings.TrimSuffix(e.Message, " (in container '')"))))
	}
	return errors.New(strings.Join(all, "; "))
}

// comesTo reports whether a type may be that of an expression of a kind.
func comesTo(t *cel.Type, kind exprKind) bool {
	if t.IsExactType(cel.DynType) {
		return true
	}
	if kind != exprRouter {
		return t.IsExactType(cel.BoolType)
	}
	return t.IsExactType(cel.StringType) || t.IsExactType(cel.ListType(cel.StringType)) || t.IsExactType(cel.ListType(cel.DynType))
}
