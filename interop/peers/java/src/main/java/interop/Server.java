package interop;

import io.modelcontextprotocol.json.McpJsonDefaults;
import io.modelcontextprotocol.server.McpServer;
import io.modelcontextprotocol.server.McpServerFeatures.SyncCompletionSpecification;
import io.modelcontextprotocol.server.McpServerFeatures.SyncPromptSpecification;
import io.modelcontextprotocol.server.McpServerFeatures.SyncResourceSpecification;
import io.modelcontextprotocol.server.McpServerFeatures.SyncResourceTemplateSpecification;
import io.modelcontextprotocol.server.McpServerFeatures.SyncToolSpecification;
import io.modelcontextprotocol.server.McpSyncServer;
import io.modelcontextprotocol.server.McpSyncServerExchange;
import io.modelcontextprotocol.server.transport.StdioServerTransportProvider;
import io.modelcontextprotocol.spec.McpError;
import io.modelcontextprotocol.spec.McpSchema;
import io.modelcontextprotocol.spec.McpSchema.CallToolRequest;
import io.modelcontextprotocol.spec.McpSchema.CallToolResult;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BiFunction;
import java.util.stream.Collectors;

/** The official Java SDK as a server: what {@code taut serve} offers. It has no paging and no cancellation. */
public final class Server {
    private static final List<String> CITIES = List.of("Amsterdam", "Athens", "Berlin", "Bern", "Lisbon", "Tokyo");
    private static final List<String> LANGUAGES = List.of("Dutch", "English", "German", "Japanese");
    private static final String WEATHER = "weather://{city}/today";
    private static final int MOST = 64 << 20;

    private final AtomicInteger touched = new AtomicInteger();
    private McpSyncServer server;

    public static void main(String[] args) {
        int extra = 0;
        for (int at = 0; at + 1 < args.length; at += 2) {
            if (args[at].equals("--tools")) {
                extra = Integer.parseInt(args[at + 1]);
            }
        }
        var transport = new StdioServerTransportProvider(McpJsonDefaults.getMapper(), System.in, System.out, MOST);
        new Server().serve(McpServer.sync(transport), extra);
    }

    /** Serves what `taut serve` offers, on whatever transport `how` has. */
    void serve(McpServer.SyncSpecification<?> how, int extra) {
        server = how
                .serverInfo("java", "1.0.0")
                .requestTimeout(Duration.ofSeconds(30))
                .capabilities(McpSchema.ServerCapabilities.builder()
                        .tools(true).resources(true, false).prompts(false).completions().logging().build())
                .tools(tools(extra))
                .resources(resource("demo://readme", "readme"), resource("demo://touched", "touched"))
                .resourceTemplates(new SyncResourceTemplateSpecification(
                        McpSchema.ResourceTemplate.builder(WEATHER, "weather").mimeType("text/plain").build(), this::read))
                .prompts(prompts())
                .completions(
                        new SyncCompletionSpecification(new McpSchema.PromptReference("greet"), (exchange, request) -> complete(request)),
                        new SyncCompletionSpecification(new McpSchema.ResourceReference(WEATHER), (exchange, request) -> complete(request)))
                .build();
    }

    private static CallToolResult said(String text) {
        return CallToolResult.builder().addTextContent(text).build();
    }

    /** An input schema: required names end in '!'. */
    private static Map<String, Object> takes(String... namesAndTypes) {
        Map<String, Object> properties = new LinkedHashMap<>();
        List<String> required = new ArrayList<>();
        for (int at = 0; at < namesAndTypes.length; at += 2) {
            String name = namesAndTypes[at].replace("!", "");
            if (!name.equals(namesAndTypes[at])) {
                required.add(name);
            }
            properties.put(name, Map.of("type", namesAndTypes[at + 1]));
        }
        return Map.of("type", "object", "properties", properties, "required", required);
    }

    private static SyncToolSpecification tool(String name, String description, Map<String, Object> schema,
            BiFunction<McpSyncServerExchange, CallToolRequest, CallToolResult> handler) {
        var tool = McpSchema.Tool.builder(name, schema).description(description);
        if (name.equals("add")) {
            tool.outputSchema(takes("sum!", "number"));
        }
        return new SyncToolSpecification(tool.build(), handler);
    }

    private List<SyncToolSpecification> tools(int extra) {
        List<SyncToolSpecification> tools = new ArrayList<>();
        BiFunction<McpSyncServerExchange, CallToolRequest, CallToolResult> echo =
                (exchange, call) -> said((String) call.arguments().get("text"));
        tools.add(tool("echo", "Say it again.", takes("text!", "string"), echo));
        tools.add(tool("add", "Add two numbers.", takes("a!", "number", "b!", "number"), (exchange, call) -> {
            double sum = number(call, "a", 0).doubleValue() + number(call, "b", 0).doubleValue();
            return CallToolResult.builder().addTextContent("{\"sum\":" + sum + "}").structuredContent(Map.of("sum", sum)).build();
        }));
        tools.add(tool("slow", "Take a while, with progress.", takes("steps", "integer", "step_ms", "integer"), Server::slow));
        tools.add(tool("fail", "Fail.", takes("reason", "string"), (exchange, call) -> CallToolResult.builder()
                .addTextContent((String) call.arguments().getOrDefault("reason", "it was asked to fail")).isError(true).build()));
        tools.add(tool("big", "Return so many bytes of text.", takes("bytes!", "integer"), (exchange, call) -> {
            int bytes = number(call, "bytes", 0).intValue();
            return said("0123456789abcdef".repeat(bytes / 16 + 1).substring(0, bytes));
        }));
        tools.add(tool("log", "Write a line to the client's log.", takes("level", "string", "message!", "string"), (exchange, call) -> {
            var level = McpSchema.LoggingLevel.valueOf(((String) call.arguments().getOrDefault("level", "info")).toUpperCase());
            exchange.loggingNotification(McpSchema.LoggingMessageNotification
                    .builder(level, (String) call.arguments().get("message")).logger("demo").build());
            return said("logged");
        }));
        tools.add(tool("ask", "Order a coffee.", takes(), Server::ask));
        tools.add(tool("sample", "Ask the client's model.", takes("prompt!", "string"), (exchange, call) -> {
            var message = McpSchema.SamplingMessage.builder(McpSchema.Role.USER,
                    McpSchema.TextContent.builder((String) call.arguments().get("prompt")).build()).build();
            var answer = exchange.createMessage(McpSchema.CreateMessageRequest.builder(List.of(message), 200).build());
            return said(((McpSchema.TextContent) answer.content()).text());
        }));
        tools.add(tool("roots", "Tell which folders the client works in.", takes(), (exchange, call) -> said(
                exchange.listRoots().roots().stream().map(McpSchema.Root::uri).collect(Collectors.joining("\n")))));
        tools.add(tool("add_tool", "Add a tool.", takes("name!", "string", "says!", "string"), (exchange, call) -> {
            String name = (String) call.arguments().get("name");
            String says = (String) call.arguments().get("says");
            server.addTool(tool(name, "Added by add_tool.", takes(), (later, none) -> said(says)));
            return said("there is a tool " + name + " now");
        }));
        tools.add(tool("touch", "Change the resource demo://touched.", takes(), (exchange, call) -> {
            int times = touched.incrementAndGet();
            server.notifyResourcesUpdated(new McpSchema.ResourcesUpdatedNotification("demo://touched"));
            return said(Integer.toString(times));
        }));
        for (int number = 0; number < extra; number++) {
            tools.add(tool(String.format("tool_%03d", number), "Plain tool number " + number + ".", takes("text!", "string"), echo));
        }
        return tools;
    }

    private static Number number(CallToolRequest call, String name, Number otherwise) {
        return (Number) call.arguments().getOrDefault(name, otherwise);
    }

    private static CallToolResult slow(McpSyncServerExchange exchange, CallToolRequest call) {
        int steps = number(call, "steps", 10).intValue();
        for (int step = 0; step < steps; step++) {
            if (call.progressToken() != null) {
                exchange.progressNotification(McpSchema.ProgressNotification.builder(call.progressToken(), step)
                        .total((double) steps).message("step " + (step + 1) + " of " + steps).build());
            }
            try {
                Thread.sleep(number(call, "step_ms", 100).longValue());
            } catch (InterruptedException interrupted) {
                System.err.println("slow: cancelled");
                Thread.currentThread().interrupt();
                return said("cancelled");
            }
        }
        return said("done after " + steps + " steps");
    }

    private static CallToolResult ask(McpSyncServerExchange exchange, CallToolRequest call) {
        Map<String, Object> form = Map.of("type", "object", "required", List.of("size"), "properties", Map.of(
                "size", Map.of("type", "string", "enum", List.of("small", "large")),
                "milk", Map.of("type", "boolean", "default", true),
                "name", Map.of("type", "string")));
        var answer = exchange.createElicitation(McpSchema.ElicitFormRequest.builder("What would you like?", form).build());
        if (answer.action() != McpSchema.ElicitResult.Action.ACCEPT) {
            return said("no coffee then");
        }
        var filled = answer.content();
        String milk = Boolean.FALSE.equals(filled.get("milk")) ? "black" : "with milk";
        return said("one " + filled.get("size") + " coffee, " + milk + ", for " + filled.getOrDefault("name", "you"));
    }

    private SyncResourceSpecification resource(String uri, String name) {
        return new SyncResourceSpecification(McpSchema.Resource.builder(uri, name).mimeType("text/plain").build(), this::read);
    }

    private McpSchema.ReadResourceResult read(McpSyncServerExchange exchange, McpSchema.ReadResourceRequest request) {
        String uri = request.uri();
        String text = switch (uri) {
            case "demo://readme" -> "# interop peer\n\nOne of each thing that an MCP server can do.\n";
            case "demo://touched" -> Integer.toString(touched.get());
            default -> CITIES.stream().filter(city -> uri.equalsIgnoreCase("weather://" + city + "/today")).findFirst()
                    .map(city -> city + ": sunny, as always in a demo")
                    .orElseThrow(() -> McpError.RESOURCE_NOT_FOUND.apply(uri));
        };
        return new McpSchema.ReadResourceResult(List.of(McpSchema.TextResourceContents.builder(uri, text).mimeType("text/plain").build()));
    }

    private static List<SyncPromptSpecification> prompts() {
        var arguments = List.of(McpSchema.PromptArgument.builder("name").required(true).build(),
                McpSchema.PromptArgument.builder("language").required(false).build());
        return List.of(
                new SyncPromptSpecification(McpSchema.Prompt.builder("hello").description("Say hello.").build(),
                        (exchange, request) -> messages("Say hello.")),
                new SyncPromptSpecification(McpSchema.Prompt.builder("greet").description("Greet somebody.").arguments(arguments).build(),
                        (exchange, request) -> messages(
                                "Greet " + request.arguments().get("name") + " in " + request.arguments().getOrDefault("language", "English") + ".",
                                "With pleasure. In one sentence or in two?", "In one.")));
    }

    /** The second of several is the assistant's. */
    private static McpSchema.GetPromptResult messages(String... texts) {
        List<McpSchema.PromptMessage> messages = new ArrayList<>();
        for (String text : texts) {
            var role = messages.size() == 1 ? McpSchema.Role.ASSISTANT : McpSchema.Role.USER;
            messages.add(McpSchema.PromptMessage.builder(role, McpSchema.TextContent.builder(text).build()).build());
        }
        return McpSchema.GetPromptResult.builder(messages).build();
    }

    private static McpSchema.CompleteResult complete(McpSchema.CompleteRequest request) {
        var words = request.argument().name().equals("city") ? CITIES : LANGUAGES;
        String start = request.argument().value().toLowerCase();
        var values = words.stream().filter(word -> word.toLowerCase().startsWith(start)).toList();
        return new McpSchema.CompleteResult(new McpSchema.CompleteResult.CompleteCompletion(values, values.size(), false));
    }
}
