// Quiz asks for capitals over several runs of one session: the state is the
// game, each run is one move.
package main

import (
	"strings"

	"github.com/weftrun/weft/sdk-guest/go/weft"
)

// StartEvent is a move.
type StartEvent struct {
	weft.Start
	Action string `enum:"start,answer,status"`
	Answer string `weft:"answer,omitempty" doc:"with the action answer"`
}

// Question is a question and its answer.
type Question struct{ Q, A string }

// Given is an answer of the player.
type Given struct {
	Question  string
	Given     string
	Correct   string
	IsCorrect bool
}

// State is the game.
type State struct {
	Questions    []Question
	CurrentIndex int `min:"0"`
	Score        int
	AnswersGiven []Given
}

// Asked is the answer to the action start.
type Asked struct {
	Action         string
	Question       string
	QuestionNumber int
	TotalQuestions int
}

// AskedNext is the answer to the action answer while there are questions.
type AskedNext struct {
	Action         string
	Feedback       string
	Question       string
	QuestionNumber int
	CurrentScore   int
}

// Complete is the answer to the action answer after the last question.
type Complete struct {
	Action     string
	Score      int
	Total      int
	Percentage float64
}

// Status is the answer to the action status.
type Status struct {
	Action       string
	CurrentIndex int
	Score        int
	Total        int
}

func play(ctx *weft.Context[State], ev StartEvent) (weft.Stop, error) {
	if ev.Action == "status" {
		s, err := ctx.State() // only looks
		return weft.Result(Status{"status", s.CurrentIndex, s.Score, len(s.Questions)}), err
	}
	var reply any
	err := ctx.Edit(func(s *State) error {
		if ev.Action == "start" {
			reply = s.start()
		} else {
			reply = s.answer(ev.Answer)
		}
		return nil
	})
	return weft.Result(reply), err
}

// start begins a new game.
func (s *State) start() any {
	s.CurrentIndex, s.Score, s.AnswersGiven = 0, 0, nil
	if len(s.Questions) == 0 {
		return s.complete()
	}
	return Asked{"question", s.Questions[0].Q, 1, len(s.Questions)}
}

// answer takes an answer to the current question and asks the next one.
func (s *State) answer(given string) any {
	if s.CurrentIndex >= len(s.Questions) {
		return s.complete()
	}
	q := s.Questions[s.CurrentIndex]
	right := strings.EqualFold(given, q.A)
	feedback := "Wrong! Answer: " + q.A
	if right {
		s.Score++
		feedback = "Correct!"
	}
	s.AnswersGiven = append(s.AnswersGiven, Given{q.Q, given, q.A, right})
	s.CurrentIndex++
	if s.CurrentIndex == len(s.Questions) {
		return s.complete()
	}
	return AskedNext{"question", feedback, s.Questions[s.CurrentIndex].Q, s.CurrentIndex + 1, s.Score}
}

func (s *State) complete() Complete {
	c := Complete{Action: "complete", Score: s.Score, Total: len(s.Questions)}
	if c.Total > 0 {
		c.Percentage = 100 * float64(c.Score) / float64(c.Total)
	}
	return c
}

func init() {
	weft.Define("quiz",
		weft.State(State{Questions: []Question{ // the state of a new session
			{"Capital of France?", "Paris"},
			{"Capital of Germany?", "Berlin"},
			{"Capital of Japan?", "Tokyo"},
		}}),
		weft.Step("play", play))
}

func main() {}
