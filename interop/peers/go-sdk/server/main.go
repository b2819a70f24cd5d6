// The official Go SDK as a server: what `taut serve` offers.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	common "interop/go_common"
)

type none struct{}
type echo struct {
	Text string `json:"text"`
}
type terms struct {
	A float64 `json:"a"`
	B float64 `json:"b"`
}
type sum struct {
	Sum float64 `json:"sum"`
}
type slow struct {
	Steps  *int `json:"steps,omitempty"`
	StepMs *int `json:"step_ms,omitempty"`
}
type fail struct {
	Reason string `json:"reason,omitempty"`
}
type big struct {
	Bytes int `json:"bytes"`
}
type line struct {
	Level   string `json:"level,omitempty"`
	Message string `json:"message"`
}
type sample struct {
	Prompt string `json:"prompt"`
}
type addTool struct {
	Name string `json:"name"`
	Says string `json:"says"`
}

func said(text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}

func tool(name, description string) *mcp.Tool {
	return &mcp.Tool{Name: name, Description: description}
}

func tools(s *mcp.Server, extra int) {
	sayAgain := func(_ context.Context, _ *mcp.CallToolRequest, in echo) (*mcp.CallToolResult, any, error) {
		return said(in.Text), nil, nil
	}
	mcp.AddTool(s, tool("echo", "Say it again."), sayAgain)
	for number := range extra {
		mcp.AddTool(s, tool(fmt.Sprintf("tool_%03d", number), fmt.Sprintf("Plain tool number %d.", number)), sayAgain)
	}
	mcp.AddTool(s, tool("add", "Add two numbers."), func(_ context.Context, _ *mcp.CallToolRequest, in terms) (*mcp.CallToolResult, sum, error) {
		return nil, sum{in.A + in.B}, nil
	})
	mcp.AddTool(s, tool("slow", "Take a while, with progress."), takeAWhile)
	mcp.AddTool(s, tool("fail", "Fail."), func(_ context.Context, _ *mcp.CallToolRequest, in fail) (*mcp.CallToolResult, any, error) {
		if in.Reason == "" {
			in.Reason = "it was asked to fail"
		}
		return nil, nil, errors.New(in.Reason)
	})
	mcp.AddTool(s, tool("big", "Return so many bytes of text."), func(_ context.Context, _ *mcp.CallToolRequest, in big) (*mcp.CallToolResult, any, error) {
		return said(common.Big(in.Bytes)), nil, nil
	})
	mcp.AddTool(s, tool("log", "Write a line to the client's log."), func(ctx context.Context, req *mcp.CallToolRequest, in line) (*mcp.CallToolResult, any, error) {
		if in.Level == "" {
			in.Level = "info"
		}
		err := req.Session.Log(ctx, &mcp.LoggingMessageParams{Level: mcp.LoggingLevel(in.Level), Logger: "demo", Data: in.Message})
		return said("logged"), nil, err
	})
}

func takeAWhile(ctx context.Context, req *mcp.CallToolRequest, in slow) (*mcp.CallToolResult, any, error) {
	steps, stepMs := 10, 100
	if in.Steps != nil {
		steps = *in.Steps
	}
	if in.StepMs != nil {
		stepMs = *in.StepMs
	}
	for step := range steps {
		if token := req.Params.GetProgressToken(); token != nil {
			req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
				ProgressToken: token, Progress: float64(step), Total: float64(steps),
				Message: fmt.Sprintf("step %d of %d", step+1, steps),
			})
		}
		select {
		case <-time.After(time.Duration(stepMs) * time.Millisecond):
		case <-ctx.Done():
			fmt.Fprintln(os.Stderr, "slow: cancelled")
			return nil, nil, ctx.Err()
		}
	}
	return said(fmt.Sprintf("done after %d steps", steps)), nil, nil
}

// asking tools return what they need; the SDK asks an older client itself and calls them again.
func asking(s *mcp.Server) {
	need := func(question mcp.InputRequest) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"it": question}}, nil, nil
	}
	mcp.AddTool(s, tool("ask", "Order a coffee."), func(_ context.Context, req *mcp.CallToolRequest, _ none) (*mcp.CallToolResult, any, error) {
		answer, ok := req.Params.InputResponses["it"].(*mcp.ElicitResult)
		if !ok {
			return need(&mcp.ElicitParams{Message: "What would you like?", RequestedSchema: common.Coffee})
		}
		if answer.Action != "accept" {
			return said("no coffee then"), nil, nil
		}
		return said(common.Order(answer.Content)), nil, nil
	})
	mcp.AddTool(s, tool("sample", "Ask the client's model."), func(_ context.Context, req *mcp.CallToolRequest, in sample) (*mcp.CallToolResult, any, error) {
		var blocks []mcp.Content
		switch answer := req.Params.InputResponses["it"].(type) {
		case *mcp.CreateMessageResult:
			blocks = []mcp.Content{answer.Content}
		case *mcp.CreateMessageWithToolsResult:
			blocks = answer.Content
		default:
			message := &mcp.SamplingMessage{Role: "user", Content: &mcp.TextContent{Text: in.Prompt}}
			return need(&mcp.CreateMessageParams{MaxTokens: 200, Messages: []*mcp.SamplingMessage{message}})
		}
		return &mcp.CallToolResult{Content: blocks}, nil, nil
	})
	mcp.AddTool(s, tool("roots", "Tell which folders the client works in."), func(_ context.Context, req *mcp.CallToolRequest, _ none) (*mcp.CallToolResult, any, error) {
		answer, ok := req.Params.InputResponses["it"].(*mcp.ListRootsResult)
		if !ok {
			return need(&mcp.ListRootsParams{})
		}
		uris := ""
		for _, root := range answer.Roots {
			if uris != "" {
				uris += "\n"
			}
			uris += root.URI
		}
		return said(uris), nil, nil
	})
}

func changing(s *mcp.Server, touched *atomic.Int64) {
	mcp.AddTool(s, tool("add_tool", "Add a tool."), func(_ context.Context, _ *mcp.CallToolRequest, in addTool) (*mcp.CallToolResult, any, error) {
		mcp.AddTool(s, tool(in.Name, "Added by add_tool."), func(context.Context, *mcp.CallToolRequest, none) (*mcp.CallToolResult, any, error) {
			return said(in.Says), nil, nil
		})
		return said(fmt.Sprintf("there is a tool %q now", in.Name)), nil, nil
	})
	mcp.AddTool(s, tool("touch", "Change the resource demo://touched."), func(ctx context.Context, _ *mcp.CallToolRequest, _ none) (*mcp.CallToolResult, any, error) {
		times := touched.Add(1)
		err := s.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: "demo://touched"})
		return said(fmt.Sprint(times)), nil, err
	})
}

func resources(s *mcp.Server, touched *atomic.Int64) {
	read := func(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		uri, text, ok := req.Params.URI, "", true
		switch uri {
		case "demo://readme":
			text = common.Readme
		case "demo://touched":
			text = fmt.Sprint(touched.Load())
		default:
			text, ok = common.Weather(uri)
		}
		if !ok {
			return nil, mcp.ResourceNotFoundError(uri)
		}
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: uri, MIMEType: "text/plain", Text: text}}}, nil
	}
	s.AddResource(&mcp.Resource{URI: "demo://readme", Name: "readme", MIMEType: "text/markdown"}, read)
	s.AddResource(&mcp.Resource{URI: "demo://touched", Name: "touched", MIMEType: "text/plain"}, read)
	s.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "weather://{city}/today", Name: "weather", MIMEType: "text/plain"}, read)
}

func prompts(s *mcp.Server) {
	message := func(role mcp.Role, text string) *mcp.PromptMessage {
		return &mcp.PromptMessage{Role: role, Content: &mcp.TextContent{Text: text}}
	}
	s.AddPrompt(&mcp.Prompt{Name: "hello", Description: "Say hello."}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{message("user", "Say hello.")}}, nil
	})
	arguments := []*mcp.PromptArgument{{Name: "name", Required: true}, {Name: "language"}}
	s.AddPrompt(&mcp.Prompt{Name: "greet", Description: "Greet somebody.", Arguments: arguments}, func(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		texts := common.Greeting(req.Params.Arguments["name"], req.Params.Arguments["language"])
		return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{
			message("user", texts[0]), message("assistant", texts[1]), message("user", texts[2]),
		}}, nil
	})
}

func main() {
	options := common.ServerFlags()
	s := mcp.NewServer(&mcp.Implementation{Name: "go-sdk", Version: "1.0.0"}, &mcp.ServerOptions{
		PageSize:           options.Page,
		SubscribeHandler:   func(context.Context, *mcp.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
		CompletionHandler: func(_ context.Context, req *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
			values := common.Completions(req.Params.Argument.Name, req.Params.Argument.Value)
			return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: values, Total: len(values)}}, nil
		},
	})
	var touched atomic.Int64
	tools(s, options.Tools)
	asking(s)
	changing(s, &touched)
	resources(s, &touched)
	prompts(s)
	if options.HTTP != 0 {
		handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil)
		log.Fatal(http.ListenAndServe(fmt.Sprintf("127.0.0.1:%d", options.HTTP), handler))
	}
	if err := s.Run(context.Background(), &mcp.StdioTransport{MaxLineLength: 64 << 20}); err != nil {
		log.Fatal(err)
	}
}
