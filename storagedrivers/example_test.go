package storagedrivers_test

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/memory"
)

// A program stores an object and reads it again.
func ExampleNew() {
	ctx := context.Background()
	storage := storagedrivers.New("default", memory.New(), storagedrivers.Options{})
	defer storage.Close()

	text := strings.NewReader("hello, world")
	stored, err := storage.Put(ctx, "2026/hello.txt", text, storagedrivers.PutOptions{Mode: storagedrivers.CreateOnly})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(stored.Key, stored.Size, stored.ContentType)

	body, _, err := storage.Open(ctx, "2026/hello.txt", storagedrivers.Range{Length: 5})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer body.Close()
	begin, err := io.ReadAll(body)
	fmt.Println(string(begin), err)
	// Output:
	// 2026/hello.txt 12 text/plain; charset=utf-8
	// hello <nil>
}

// A probe tests a configured storage step by step.
func ExampleStorage_Probe() {
	storage := storagedrivers.New("default", memory.New(), storagedrivers.Options{
		Description: storagedrivers.Description{Title: "Memory", Noun: "map", Local: true},
	})
	defer storage.Close()

	report := storage.Probe(context.Background())
	for _, step := range report.Steps {
		fmt.Println(step.Title, step.Err == nil)
	}
	fmt.Println("usable:", report.OK())
	// Output:
	// find the map true
	// store a small object true
	// refuse a second object of the same name true
	// read the object true
	// read a part of the object true
	// replace the object true
	// find the object in a listing true
	// delete the object true
	// check that the object is gone true
	// usable: true
}
