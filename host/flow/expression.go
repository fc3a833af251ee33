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

// exprKind is the place of an expression. It determines what the expression sees and
// which type it must have.
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

// variables are all names that expressions of any kind may use.
var variables = []string{
	varInput, varContent, varOutputs, varAdditional, varState, varChoices,
	varIteration, varMost, varSuccess, varLast, varResults,
}

// environments holds one environment for each kind. They are made once, because making
// one takes about a millisecond, and never change.
var environments = [...]*cel.Env{
	exprCondition: environment(),
	exprRouter:    environment(cel.Variable(varChoices, cel.ListType(cel.StringType))),
	exprLoop: environment(
		cel.Variable(varIteration, cel.IntType), cel.Variable(varMost, cel.IntType),
		cel.Variable(varSuccess, cel.BoolType), cel.Variable(varLast, cel.DynType),
		cel.Variable(varResults, cel.MapType(cel.StringType, cel.DynType))),
}

// maxNestedLoops bounds the depth of nested macros (all, exists, map, filter).
const maxNestedLoops = 4

// environment returns the environment common to all kinds, plus more. It has the standard
// functions and nothing else: no clock and no randomness.
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
		panic(err) // the options are constants, so any test would find an error
	}
	return env
}

// expression is a compiled expression. It may be used by any number of goroutines.
type expression struct {
	text       string
	readsState bool // the expression may read the session's state
	program    cel.Program
	ast        *cel.Ast
	paths      []string // paths of nested nodes, as far as literals in the expression may name them
}

// compile checks an expression and compiles it. The error lists all problems with
// their positions.
func compile(text string, kind exprKind) (*expression, error) {
	if len(text) > MaxExpression {
		return nil, fmt.Errorf("it has %d bytes, at most %d are allowed", len(text), MaxExpression)
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

// boundPatterns refuses literal patterns that are too long or too complex.
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

// quotedPath matches a literal in an expression that may name a nested node.
var quotedPath = regexp.MustCompile(`"[^"\\]+/[^"\\]+"|'[^'\\]+/[^'\\]+'`)

// named lists the paths of nodes that literals of an expression may name.
func named(text string) []string {
	var paths []string
	for _, quoted := range quotedPath.FindAllString(text, -1) {
		paths = append(paths, quoted[1:len(quoted)-1])
	}
	return paths
}

// positions returns the problems of an expression as one error.
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

// comesTo reports whether an expression of a kind may have a type.
func comesTo(t *cel.Type, kind exprKind) bool {
	if t.IsExactType(cel.DynType) {
		return true
	}
	if kind != exprRouter {
		return t.IsExactType(cel.BoolType)
	}
	return t.IsExactType(cel.StringType) || t.IsExactType(cel.ListType(cel.StringType)) || t.IsExactType(cel.ListType(cel.DynType))
}
