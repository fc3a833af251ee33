package py_test

import (
	"cmp"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/hosttest/suite"
)

// cpython returns the library that comes with the sources of the engine. CPython's own
// tests are in it.
func cpython(t *testing.T) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	dirs, err := filepath.Glob(filepath.Join(cmp.Or(os.Getenv("WEFT_ENGINES"), filepath.Join(cache, "weft-engines")), "cpython-*", "lib", "python3.*"))
	if err != nil || len(dirs) == 0 {
		suite.Missing(t, "needs the sources of CPython, which 'make engines' fetches")
	}
	return slices.Max(dirs)
}

// runner runs a file of CPython's tests in a step. Modules of the library are there once: the
// tests that want another copy of one, without its parts in C, get the same.
const runner = `import weft
from weft import StartEvent, StopEvent, Workflow, step


class Runner(Workflow, name="runner"):
    @step
    async def run(self, ev: StartEvent) -> StopEvent:
        import importlib, unittest
        from test.support import import_helper
        import_helper.import_fresh_module = lambda name, fresh=(), blocked=(), deprecated=False: importlib.import_module(name)
        failed, ran = {}, 0
        todo = [unittest.defaultTestLoader.loadTestsFromName("test." + ev.module)]
        while todo:
            test = todo.pop(0)
            if isinstance(test, unittest.TestSuite):
                todo[:0] = list(test)
                continue
            result = unittest.TestResult()
            unittest.TestSuite([test]).run(result)
            ran += 1 - len(result.skipped)
            for _, text in result.failures + result.errors:
                failed[test.id().removeprefix("test.").removeprefix(ev.module + ".")] = text[-500:]
        return StopEvent(result={"ran": ran, "failed": failed})
`

// stubs are modules that the tests import and hardly use.
var stubs = map[string]string{
	"signal":     "default_int_handler = SIGINT = None\ndef getsignal(n): return None\ndef signal(n, f): pass\n",
	"subprocess": "DEVNULL = PIPE = STDOUT = None\nclass SubprocessError(Exception): pass\n",
	"doctest": "import unittest\ndef DocTestSuite(*a, **k): return unittest.TestSuite()\nDocFileSuite = DocTestSuite\n" +
		"ELLIPSIS = NORMALIZE_WHITESPACE = IGNORE_EXCEPTION_DETAIL = 0\n",
}

// What the tests import beside that, and the engine does not have.
const testLibrary = `argparse.py configparser.py getpass.py gettext.py py_compile.py pydoc.py shutil.py sysconfig.py
	_sysconfigdata__wasi_wasm32-wasi.py tempfile.py unittest zipimport.py test/__init__.py test/list_tests.py test/mapping_tests.py
	test/pickletester.py test/re_tests.py test/seq_tests.py test/string_tests.py test/support test/test_grammar.py test/test_iter.py
	test/typinganndata`

// The files of tests: those that every suite plays, and those of a long one.
const (
	fewTests = "test_dict test_list test_int test_json test_dataclasses test_fstring"
	allTests = `datetimetester test_base64 test_bisect test_bool test_bytes test_calendar test_collections test_contextlib test_copy test_coroutines
		test_defaultdict test_deque test_difflib test_enum test_except_star test_exception_group test_float test_fractions test_functools
		test_generators test_graphlib test_heapq test_hmac test_html test_ipaddress test_itertools test_long test_ordered_dict test_patma
		test_re test_secrets test_set test_shlex test_statistics test_string test_strptime test_struct test_textwrap test_tuple test_typing
		test_unicode test_urlparse test_uuid`
)

// CPython's own tests of the language and of its library pass in a step, but for those that
// a list names.
func TestCPython(t *testing.T) {
	suite.NotShort(t, "compiles an interpreter")
	lib := cpython(t)
	modules := strings.Fields(fewTests)
	least := 480
	if suite.Soak() {
		modules = append(modules, strings.Fields(allTests)...)
		least = 6000
	}
	files := map[string]string{"main.py": runner}
	for name, text := range stubs {
		files["vendor/"+name+".py"] = text
	}
	wanted := strings.Fields(testLibrary)
	for _, name := range modules {
		name = "test/" + name
		if _, err := os.Stat(filepath.Join(lib, name)); err != nil {
			name += ".py"
		}
		wanted = append(wanted, name)
	}
	for _, name := range wanted {
		err := filepath.WalkDir(filepath.Join(lib, name), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Ext(path) != ".py" {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			inside, err := filepath.Rel(lib, path)
			files["vendor/"+filepath.ToSlash(inside)] = string(text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	p, _, err := load(build(t, files))
	if err != nil {
		t.Fatal(problems(err))
	}
	chance := &calls{answer: func(im abi.Import, req []byte) ([]byte, abi.Status) {
		if im != abi.ImportRandom {
			return abi.Null, abi.StatusOK
		}
		n, err := abi.DecodeValue(req)
		if err != nil {
			t.Error(err)
		}
		answer, err := abi.EncodeValue(drawn(n.([]any)[0].(int64)))
		if err != nil {
			t.Error(err)
		}
		return answer, abi.StatusOK
	}}
	ran := 0
	for _, module := range modules {
		t.Run(module, func(t *testing.T) {
			text, failed := result(t, p.invoke(t, chance, "run", "StartEvent", `{"module":"`+module+`"}`, func(inv *host.Invocation) {
				inv.Limits.Fuel = 100_000_000_000
			}))
			if failed != nil {
				t.Fatal(failed, dataOf(failed))
			}
			var got struct {
				Ran    int
				Failed map[string]string
			}
			if err := json.Unmarshal([]byte(text), &got); err != nil {
				t.Fatal(err)
			}
			ran += got.Ran
			expected := cpythonDeviations[module]
			for name, why := range got.Failed {
				if expected[name] == "" {
					t.Errorf("%s.%s fails: %s", module, name, why)
				}
			}
			for name, why := range expected {
				if got.Failed[name] == "" {
					t.Errorf("%s.%s passes, although it fails for %q", module, name, why)
				}
			}
		})
	}
	if t.Logf("%d tests", ran); ran < least {
		t.Errorf("only %d tests, at least %d are meant", ran, least)
	}
}

var draws uint64

// drawn returns bytes that differ from those before.
func drawn(n int64) []byte {
	out := make([]byte, n)
	for i := range out {
		draws = draws*6364136223846793005 + 1442695040888963407
		out[i] = byte(draws >> 56)
	}
	return out
}

// cpythonDeviations says of tests why they fail in a step.
var cpythonDeviations = map[string]map[string]string{
	"test_json": {
		"TestPyTest.test_pyjson": "it wants a module without its parts in C",
	},
	"test_fstring": {
		"TestCase.test_filename_in_syntaxerror": "it uses files",
	},
	"datetimetester": {
		"TestModule.test_divide_and_round": "it wants a module without its parts in C",
	},
	"test_base64": {
		"TestMain.test_decode":      "it uses files",
		"TestMain.test_encode_file": "it uses files",
	},
	"test_bool": {
		"BoolTest.test_fileclosed": "it uses files",
	},
	"test_bytes": {
		"BytesTest.test_custom":             "the engine does not have all encodings",
		"ByteArrayTest.test_bytearray_api":  "it uses files",
		"BytesTest.test_buffer_is_readonly": "it uses files",
	},
	"test_contextlib": {
		"TestChdir.test_simple":                       "it uses files",
		"TestChdir.test_exception":                    "it uses files",
		"TestChdir.test_reentrant":                    "it uses files",
		"FileContextTestCase.testWithOpen":            "it uses files",
		"TestExitStack.test_exit_exception_traceback": "the traceback has no lines of the library",
	},
	"test_coroutines": {
		"CAPITest.test_tp_await_1": "it uses CPython's own test module in C",
		"CAPITest.test_tp_await_2": "it uses CPython's own test module in C",
		"CAPITest.test_tp_await_3": "it uses CPython's own test module in C",
	},
	"test_difflib": {
		"TestSFpatches.test_html_diff": "it uses files",
	},
	"test_float": {
		"ReprTestCase.test_repr":                 "it uses files",
		"FormatTestCase.test_format_testfile":    "it uses files",
		"GeneralFloatCases.test_floatconversion": "it sleeps",
	},
	"test_heapq": {
		"TestModules.test_py_functions": "it wants a module without its parts in C",
	},
	"test_statistics": {
		"DocTests.test_doc_tests":       "it uses doctest",
		"TestModules.test_py_functions": "it wants a module without its parts in C",
	},
	"test_struct": {
		"StructTest.test__struct_reference_cycle_cleaned_up": "it deletes a module that is in the image",
	},
	"test_typing": {
		"TestModules.test_py_functions":           "it wants a module without its parts in C",
		"RETests.test_re_submodule_access_basics": "the library has no docstrings",
	},
	"test_unicode": {
		"UnicodeTest.test_codecs_errors":  "the engine does not have all encodings",
		"UnicodeTest.test_codecs_charmap": "the engine does not have all encodings",
		"UnicodeTest.test_ucs4":           "the engine does not have all encodings",
		"UnicodeTest.test_codecs":         "the engine does not have all encodings",
		"UnicodeTest.test_codecs_utf7":    "the engine does not have all encodings",
	},
	"test_uuid": {
		"TestInternalsWithExtModule.test_arp_getnode":    "it uses sockets",
		"TestInternalsWithoutExtModule.test_arp_getnode": "it uses sockets",
	},
}
