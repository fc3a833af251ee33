//go:build wasm

// Command extism-go is a plugin as Extism's authors write them, with their Go
// PDK: it knows nothing of weft.
package main

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"github.com/extism/go-pdk"
)

//go:wasmexport count_vowels
func countVowels() int32 {
	count := 0
	for _, r := range pdk.InputString() {
		if strings.ContainsRune("aeiouAEIOU", r) {
			count++
		}
	}
	pdk.OutputString(`{"count":` + strconv.Itoa(count) + `}`)
	return 0
}

//go:wasmexport echo
func echo() int32 {
	pdk.Output(pdk.Input())
	return 0
}

// fail sets an error and returns what its input says.
//
//go:wasmexport fail
func fail() int32 {
	code, text, sets := strings.Cut(pdk.InputString(), " ")
	n, _ := strconv.Atoi(code)
	pdk.SetVar("left", []byte("behind"))
	if sets {
		pdk.SetError(errors.New(text))
	}
	pdk.OutputString("an output of no use")
	return int32(n)
}

//go:wasmexport trap
func trap() int32 {
	panic("out of " + pdk.InputString())
}

//go:wasmexport config
func config() int32 {
	value, ok := pdk.GetConfig(pdk.InputString())
	pdk.OutputString(value + " " + strconv.FormatBool(ok))
	return 0
}

// vars does what its input says, line by line, and gives what it got.
//
//go:wasmexport vars
func vars() int32 {
	var got []string
	for _, line := range strings.Split(pdk.InputString(), "\n") {
		words := strings.SplitN(line, " ", 3)
		switch words[0] {
		case "set":
			pdk.SetVar(words[1], []byte(words[2]))
		case "get":
			got = append(got, strconv.Quote(string(pdk.GetVar(words[1]))))
		case "remove":
			pdk.RemoveVar(words[1])
		case "count":
			n := pdk.GetVarInt(words[1]) + 1
			pdk.SetVarInt(words[1], n)
			got = append(got, strconv.Itoa(n))
		}
	}
	pdk.OutputString(strings.Join(got, " "))
	return 0
}

type request struct {
	Method, URL, Body string
	Headers           map[string]string
}

// fetch makes the request that its input says.
//
//go:wasmexport fetch
func fetch() int32 {
	var q request
	if err := json.Unmarshal(pdk.Input(), &q); err != nil {
		pdk.SetError(err)
		return 1
	}
	methods := map[string]pdk.HTTPMethod{"GET": pdk.MethodGet, "POST": pdk.MethodPost, "PUT": pdk.MethodPut}
	req := pdk.NewHTTPRequest(methods[q.Method], q.URL)
	for name, value := range q.Headers {
		req.SetHeader(name, value)
	}
	if q.Body != "" {
		req.SetBody([]byte(q.Body))
	}
	res := req.Send()
	pdk.OutputString(strconv.Itoa(int(res.Status())) + " " + res.Headers()["x-answer"] + " " + string(res.Body()))
	return 0
}

//go:wasmexport log_lines
func logLines() int32 {
	pdk.Log(pdk.LogDebug, "a debug line")
	pdk.Log(pdk.LogInfo, pdk.InputString())
	pdk.Log(pdk.LogError, "an error line")
	return 0
}

// spin never ends.
//
//go:wasmexport spin
func spin() int32 {
	for {
		pdk.Log(pdk.LogTrace, "on and on")
	}
}

// hoard allocates and never frees.
//
//go:wasmexport hoard
func hoard() int32 {
	for {
		pdk.Allocate(1 << 20)
	}
}

func main() {}
