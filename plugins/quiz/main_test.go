package main

import (
	"reflect"
	"testing"

	"github.com/weftrun/weft/sdk-guest/go/wefttest"
)

func TestGame(t *testing.T) {
	type fields = map[string]any
	complete := fields{"action": "complete", "score": int64(2), "total": int64(3), "percentage": 200.0 / 3}
	moves := []struct {
		move, want fields
	}{
		{fields{"action": "status"}, fields{"action": "status", "current_index": int64(0), "score": int64(0), "total": int64(3)}},
		{fields{"action": "start"}, fields{"action": "question", "question": "Capital of France?", "question_number": int64(1), "total_questions": int64(3)}},
		{fields{"action": "answer", "answer": "pARIS"}, fields{"action": "question", "feedback": "Correct!", "question": "Capital of Germany?", "question_number": int64(2), "current_score": int64(1)}},
		{fields{"action": "answer"}, fields{"action": "question", "feedback": "Wrong! Answer: Berlin", "question": "Capital of Japan?", "question_number": int64(3), "current_score": int64(1)}},
		{fields{"action": "answer", "answer": "Tokyo"}, complete},
		{fields{"action": "answer", "answer": "Tokyo"}, complete},
		{fields{"action": "status"}, fields{"action": "status", "current_index": int64(3), "score": int64(2), "total": int64(3)}},
	}
	session := wefttest.NewSession()
	for i, m := range moves {
		run, err := session.Run(m.move)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(run.Result, any(m.want)) {
			t.Errorf("move %d: got  %v\nwant %v", i, run.Result, m.want)
		}
	}
	var given []Given
	if err := session.Read("answers_given", &given); err != nil {
		t.Fatal(err)
	}
	want := []Given{
		{"Capital of France?", "pARIS", "Paris", true},
		{"Capital of Germany?", "", "Berlin", false},
		{"Capital of Japan?", "Tokyo", "Tokyo", true},
	}
	if !reflect.DeepEqual(given, want) {
		t.Errorf("answers given: %+v", given)
	}
}

func TestAnswerBeforeAnyStartIsForTheFirstQuestion(t *testing.T) {
	run, err := wefttest.NewSession().Run(map[string]any{"action": "answer", "answer": "paris "})
	if err != nil {
		t.Fatal(err)
	}
	if got := run.Result.(map[string]any)["feedback"]; got != "Wrong! Answer: Paris" { // the answer is not trimmed
		t.Error(got)
	}
}
