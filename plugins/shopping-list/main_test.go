package main

import (
	"slices"
	"testing"
)

func TestReadIsForgiving(t *testing.T) {
	for _, tt := range []struct {
		text, do string
		items    []string
	}{
		{"add milk", "add", []string{"milk"}},
		{"add milk, bread and eggs", "add", []string{"milk", "bread", "eggs"}},
		{"  ADD   Sweet   Corn ,and  Sandpaper", "add", []string{"Sweet Corn", "Sandpaper"}},
		{"add a and b and c", "add", []string{"a", "b", "c"}},
		{"remove bread", "remove", []string{"bread"}},
		{"List", "show", nil},
		{" clear ", "clear", nil},
		{"add", "help", nil},
		{"add , and", "help", nil},
		{"list it", "help", nil},
		{"what?", "help", nil},
		{"", "help", nil},
	} {
		if got := read(tt.text); got.do != tt.do || !slices.Equal(got.items, tt.items) {
			t.Errorf("read(%q) = %+v, want %s %v", tt.text, got, tt.do, tt.items)
		}
	}
}
