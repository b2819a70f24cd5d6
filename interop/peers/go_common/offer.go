// Package common is what the Go peers share, free of any SDK.
package common

import (
	"flag"
	"fmt"
	"strings"
)

var (
	Cities    = []string{"Amsterdam", "Athens", "Berlin", "Bern", "Lisbon", "Tokyo"}
	Languages = []string{"Dutch", "English", "German", "Japanese"}
)

const Readme = "# interop peer\n\nOne of each thing that an MCP server can do.\n"

// Coffee is the form of the tool `ask`.
var Coffee = map[string]any{
	"type": "object",
	"properties": map[string]any{
		"size": map[string]any{"type": "string", "enum": []string{"small", "large"}},
		"milk": map[string]any{"type": "boolean", "default": true},
		"name": map[string]any{"type": "string"},
	},
	"required": []string{"size"},
}

type ServerOptions struct{ Tools, Page, HTTP int }

func ServerFlags() ServerOptions {
	var o ServerOptions
	flag.IntVar(&o.Tools, "tools", 0, "so many extra plain tools")
	flag.IntVar(&o.Page, "page", 0, "items per page of a list; 0 = the SDK's own")
	flag.IntVar(&o.HTTP, "http", 0, "serve Streamable HTTP on this port, not stdio")
	flag.Parse()
	return o
}

func Big(count int) string {
	return strings.Repeat("0123456789abcdef", count/16+1)[:count]
}

// Order is what the tool `ask` says to a filled-in form.
func Order(form map[string]any) string {
	milk := "with milk"
	if with, ok := form["milk"].(bool); ok && !with {
		milk = "black"
	}
	name, _ := form["name"].(string)
	if name == "" {
		name = "you"
	}
	return fmt.Sprintf("one %v coffee, %s, for %s", form["size"], milk, name)
}

// Weather is the resource weather://{city}/today, or nothing.
func Weather(uri string) (string, bool) {
	city, ok := strings.CutSuffix(strings.TrimPrefix(uri, "weather://"), "/today")
	for _, known := range Cities {
		if ok && strings.EqualFold(known, city) {
			return known + ": sunny, as always in a demo", true
		}
	}
	return "", false
}

// Greeting has the text of each message of the prompt `greet`; the second is the assistant's.
func Greeting(name, language string) [3]string {
	if language == "" {
		language = "English"
	}
	return [3]string{
		fmt.Sprintf("Greet %s in %s.", name, language),
		"With pleasure. In one sentence or in two?",
		"In one.",
	}
}

// Completions of the argument called name.
func Completions(name, start string) []string {
	found := []string{}
	for _, word := range map[string][]string{"language": Languages, "city": Cities}[name] {
		if strings.HasPrefix(strings.ToLower(word), strings.ToLower(start)) {
			found = append(found, word)
		}
	}
	return found
}
