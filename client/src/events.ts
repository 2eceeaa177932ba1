/** A block of server-sent events. `data` is parsed. A comment has none, and may have an `id`. */
export type ServerEvent = { id?: string; data?: unknown }

/**
 * Parses server-sent events as kith sends them: a line feed ends each line, and `data` is one line of JSON. An incomplete
 * block at the end is discarded, as the HTML Living Standard says. Throws a SyntaxError for other data.
 */
export async function* eventsOf(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<ServerEvent, void, undefined> {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  let rest = ''
  for await (const chunk of chunks) {
    const blocks = (rest + decoder.decode(chunk, { stream: true })).split('\n\n')
    rest = blocks.pop() ?? ''
    for (const block of blocks) yield eventOf(block)
  }
}

function eventOf(block: string): ServerEvent {
  const event: ServerEvent = {}
  for (const line of block.split('\n')) {
    if (line.startsWith('id: ')) event.id = line.slice(4)
    if (line.startsWith('data: ')) event.data = JSON.parse(line.slice(6))
  }
  return event
}
