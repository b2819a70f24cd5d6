// A model on loopback that always does the same: calls the offered tool whose name has `echo` in it with
// {"text":"hello from the model"}, then repeats what the tool said. Speaks what Codex asks for: OpenAI's
// responses, streamed. No network, no key.
import http from 'node:http';
import zlib from 'node:zlib';

// Tools stand in the list by themselves, or in a namespace of one server.
function offered(tools) {
  return (tools || []).flatMap(tool => {
    if (tool.type === 'namespace') return (tool.tools || []).map(inner => ({ name: inner.name, namespace: tool.name }));
    return [{ name: tool.name || (tool.function || {}).name }];
  });
}

function decide(asked) {
  const input = Array.isArray(asked.input) ? asked.input : [];
  const told = input.filter(item => /tool_call_output$|function_call_output$/.test(item.type || ''));
  const tool = offered(asked.tools).find(each => (each.name || '').includes('echo'));
  if (tool && !told.length) {
    const call = { type: 'function_call', id: 'fc_1', call_id: 'call_1', name: tool.name, arguments: JSON.stringify({ text: 'hello from the model' }), status: 'completed' };
    return tool.namespace ? { ...call, namespace: tool.namespace } : call;
  }
  const words = told.length ? JSON.stringify(told.at(-1).output) : 'no tool was offered';
  return { type: 'message', id: 'msg_1', role: 'assistant', status: 'completed', content: [{ type: 'output_text', text: 'the tool said ' + words.slice(0, 300), annotations: [] }] };
}

export async function model() {
  const asked = [];
  const server = http.createServer(async (request, answer) => {
    const parts = [];
    for await (const part of request) parts.push(part);
    let body = Buffer.concat(parts);
    if (request.headers['content-encoding'] === 'gzip') body = zlib.gunzipSync(body);
    if (request.headers['content-encoding'] === 'zstd') body = zlib.zstdDecompressSync?.(body) ?? body;
    if (request.method !== 'POST' || !request.url.includes('/responses')) {
      answer.writeHead(request.url.includes('models') ? 200 : 404, { 'content-type': 'application/json' });
      answer.end(JSON.stringify({ object: 'list', data: [], models: [] }));
      return;
    }
    const question = JSON.parse(body.toString() || '{}');
    asked.push(question);
    const item = decide(question);
    const usage = { input_tokens: 1, output_tokens: 1, total_tokens: 2, input_tokens_details: { cached_tokens: 0 }, output_tokens_details: { reasoning_tokens: 0 } };
    const whole = { id: 'resp_' + asked.length, object: 'response', created_at: 1, status: 'completed', model: question.model, output: [item], usage };
    const events = [
      { type: 'response.created', response: { ...whole, status: 'in_progress', output: [] } },
      { type: 'response.output_item.added', output_index: 0, item },
      { type: 'response.output_item.done', output_index: 0, item },
      { type: 'response.completed', response: whole },
    ];
    answer.writeHead(200, { 'content-type': 'text/event-stream' });
    answer.end(events.map((event, at) => `event: ${event.type}\ndata: ${JSON.stringify({ ...event, sequence_number: at })}\n\n`).join(''));
  });
  await new Promise(done => server.listen(0, '127.0.0.1', done));
  return { url: `http://127.0.0.1:${server.address().port}/v1`, asked, close: () => { server.closeAllConnections(); server.close(); } };
}
