// mark3labs/mcp-go as a server: what `taut serve` offers.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	common "interop/go_common"
)

var touched atomic.Int64

type call = mcp.CallToolRequest
type result = mcp.CallToolResult

func said(text string) (*result, error) { return mcp.NewToolResultText(text), nil }

func tools(s *server.MCPServer, extra int) {
	echo := func(_ context.Context, req call) (*result, error) { return said(req.GetString("text", "")) }
	text := mcp.WithString("text", mcp.Required())
	s.AddTool(mcp.NewTool("echo", mcp.WithDescription("Say it again."), text), echo)
	for number := range extra {
		name, what := fmt.Sprintf("tool_%03d", number), fmt.Sprintf("Plain tool number %d.", number)
		s.AddTool(mcp.NewTool(name, mcp.WithDescription(what), text), echo)
	}
	type sum struct {
		Sum float64 `json:"sum"`
	}
	s.AddTool(mcp.NewTool("add", mcp.WithDescription("Add two numbers."), mcp.WithNumber("a", mcp.Required()), mcp.WithNumber("b", mcp.Required()), mcp.WithOutputSchema[sum]()),
		func(_ context.Context, req call) (*result, error) {
			return mcp.NewToolResultStructuredOnly(sum{req.GetFloat("a", 0) + req.GetFloat("b", 0)}), nil
		})
	s.AddTool(mcp.NewTool("slow", mcp.WithDescription("Take a while, with progress."), mcp.WithNumber("steps"), mcp.WithNumber("step_ms")), slow(s))
	s.AddTool(mcp.NewTool("fail", mcp.WithDescription("Fail."), mcp.WithString("reason")), func(_ context.Context, req call) (*result, error) {
		return mcp.NewToolResultError(req.GetString("reason", "it was asked to fail")), nil
	})
	s.AddTool(mcp.NewTool("big", mcp.WithDescription("Return so many bytes of text."), mcp.WithNumber("bytes", mcp.Required())), func(_ context.Context, req call) (*result, error) {
		return said(common.Big(req.GetInt("bytes", 0)))
	})
	s.AddTool(mcp.NewTool("log", mcp.WithDescription("Write a line to the client's log."), mcp.WithString("level"), mcp.WithString("message", mcp.Required())), func(ctx context.Context, req call) (*result, error) {
		level := mcp.LoggingLevel(req.GetString("level", "info"))
		if err := s.SendLogMessageToClient(ctx, mcp.NewLoggingMessageNotification(level, "demo", req.GetString("message", ""))); err != nil {
			fmt.Fprintln(os.Stderr, "log:", err)
		}
		return said("logged")
	})
}

func slow(s *server.MCPServer) server.ToolHandlerFunc {
	return func(ctx context.Context, req call) (*result, error) {
		steps, stepMs := req.GetInt("steps", 10), req.GetInt("step_ms", 100)
		for step := range steps {
			if req.Params.Meta != nil && req.Params.Meta.ProgressToken != nil {
				s.SendNotificationToClient(ctx, "notifications/progress", map[string]any{
					"progressToken": req.Params.Meta.ProgressToken, "progress": step, "total": steps,
					"message": fmt.Sprintf("step %d of %d", step+1, steps),
				})
			}
			select {
			case <-time.After(time.Duration(stepMs) * time.Millisecond):
			case <-ctx.Done():
				fmt.Fprintln(os.Stderr, "slow: cancelled")
				return nil, ctx.Err()
			}
		}
		return said(fmt.Sprintf("done after %d steps", steps))
	}
}

// asking tools return what they need; the SDK asks an older client itself and calls them again.
func asking(s *server.MCPServer) {
	s.AddTool(mcp.NewTool("ask", mcp.WithDescription("Order a coffee.")), func(_ context.Context, req call) (*result, error) {
		answer := server.ElicitationResponse(req.Params.InputResponses, "it")
		if answer == nil {
			form := mcp.ElicitationParams{Message: "What would you like?", RequestedSchema: common.Coffee}
			return server.NewInputRequestBuilder("").Elicit("it", form).ToolResult(), nil
		}
		filled, ok := answer.Content.(map[string]any)
		if !ok || answer.Action != mcp.ElicitationResponseActionAccept {
			return said("no coffee then")
		}
		return said(common.Order(filled))
	})
	s.AddTool(mcp.NewTool("sample", mcp.WithDescription("Ask the client's model."), mcp.WithString("prompt", mcp.Required())), func(_ context.Context, req call) (*result, error) {
		answer := server.SamplingResponse(req.Params.InputResponses, "it")
		if answer == nil {
			message := mcp.SamplingMessage{Role: mcp.RoleUser, Content: mcp.NewTextContent(req.GetString("prompt", ""))}
			params := mcp.CreateMessageParams{MaxTokens: 200, Messages: []mcp.SamplingMessage{message}}
			return server.NewInputRequestBuilder("").Sample("it", params).ToolResult(), nil
		}
		switch content := answer.Content.(type) {
		case mcp.TextContent:
			return said(content.Text)
		case map[string]any:
			return said(fmt.Sprint(content["text"]))
		default:
			return said(fmt.Sprint(content))
		}
	})
	s.AddTool(mcp.NewTool("roots", mcp.WithDescription("Tell which folders the client works in.")), func(_ context.Context, req call) (*result, error) {
		answer := server.RootsResponse(req.Params.InputResponses, "it")
		if answer == nil {
			return server.NewInputRequestBuilder("").Roots("it").ToolResult(), nil
		}
		var uris []string
		for _, root := range answer.Roots {
			uris = append(uris, root.URI)
		}
		return said(strings.Join(uris, "\n"))
	})
}

func changing(s *server.MCPServer) {
	s.AddTool(mcp.NewTool("add_tool", mcp.WithDescription("Add a tool."), mcp.WithString("name", mcp.Required()), mcp.WithString("says", mcp.Required())), func(_ context.Context, req call) (*result, error) {
		name, says := req.GetString("name", ""), req.GetString("says", "")
		s.AddTool(mcp.NewTool(name, mcp.WithDescription("Added by add_tool.")), func(context.Context, call) (*result, error) { return said(says) })
		return said(fmt.Sprintf("there is a tool %q now", name))
	})
	s.AddTool(mcp.NewTool("touch", mcp.WithDescription("Change the resource demo://touched.")), func(ctx context.Context, _ call) (*result, error) {
		times := touched.Add(1)
		uri := "demo://touched"
		session, ok := server.ClientSessionFromContext(ctx).(server.SessionWithResourceSubscriptions)
		if !ok || session.IsSubscribedToResource(uri) {
			s.SendNotificationToClient(ctx, mcp.MethodNotificationResourceUpdated, map[string]any{"uri": uri})
		}
		return said(fmt.Sprint(times))
	})
}

func read(_ context.Context, req mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
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
		return nil, fmt.Errorf("there is no resource %s", uri)
	}
	return []mcp.ResourceContents{mcp.TextResourceContents{URI: uri, MIMEType: "text/plain", Text: text}}, nil
}

func prompts(s *server.MCPServer) {
	message := func(role mcp.Role, text string) mcp.PromptMessage {
		return mcp.NewPromptMessage(role, mcp.NewTextContent(text))
	}
	s.AddPrompt(mcp.NewPrompt("hello", mcp.WithPromptDescription("Say hello.")), func(context.Context, mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return mcp.NewGetPromptResult("", []mcp.PromptMessage{message(mcp.RoleUser, "Say hello.")}), nil
	})
	s.AddPrompt(mcp.NewPrompt("greet", mcp.WithPromptDescription("Greet somebody."), mcp.WithArgument("name", mcp.RequiredArgument()), mcp.WithArgument("language")), func(_ context.Context, req mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		texts := common.Greeting(req.Params.Arguments["name"], req.Params.Arguments["language"])
		return mcp.NewGetPromptResult("", []mcp.PromptMessage{
			message(mcp.RoleUser, texts[0]), message(mcp.RoleAssistant, texts[1]), message(mcp.RoleUser, texts[2]),
		}), nil
	})
}

type completer struct{}

func (completer) complete(argument mcp.CompleteArgument) (*mcp.Completion, error) {
	values := common.Completions(argument.Name, argument.Value)
	return &mcp.Completion{Values: values, Total: len(values)}, nil
}

func (c completer) CompletePromptArgument(_ context.Context, _ string, argument mcp.CompleteArgument, _ mcp.CompleteContext) (*mcp.Completion, error) {
	return c.complete(argument)
}

func (c completer) CompleteResourceArgument(_ context.Context, _ string, argument mcp.CompleteArgument, _ mcp.CompleteContext) (*mcp.Completion, error) {
	return c.complete(argument)
}

func main() {
	options := common.ServerFlags()
	with := []server.ServerOption{
		server.WithToolCapabilities(true),
		server.WithResourceCapabilities(true, false),
		server.WithPromptCapabilities(false),
		server.WithLogging(),
		server.WithElicitation(),
		server.WithRoots(),
		server.WithCompletions(),
		server.WithPromptCompletionProvider(completer{}),
		server.WithResourceCompletionProvider(completer{}),
	}
	if options.Page > 0 {
		with = append(with, server.WithPaginationLimit(options.Page))
	}
	s := server.NewMCPServer("mcp-go", "1.0.0", with...)
	s.EnableSampling()
	tools(s, options.Tools)
	asking(s)
	changing(s)
	s.AddResource(mcp.NewResource("demo://readme", "readme", mcp.WithMIMEType("text/markdown")), read)
	s.AddResource(mcp.NewResource("demo://touched", "touched", mcp.WithMIMEType("text/plain")), read)
	s.AddResourceTemplate(mcp.NewResourceTemplate("weather://{city}/today", "weather"), server.ResourceTemplateHandlerFunc(read))
	prompts(s)
	if err := server.ServeStdio(s, server.WithWorkerPoolSize(100), server.WithQueueSize(1000)); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}
