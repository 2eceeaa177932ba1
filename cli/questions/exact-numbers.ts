import { parseWithAllDigits } from '../../src/values/parse-json.ts'

/** A fetch for a client that reads lines, and the line that it read last, each once, with all digits of its numbers. */
export type ExactFetch = { fetch: typeof fetch; nextLine: () => unknown }

export function createExactFetch(): ExactFetch {
  let text = ''
  return {
    fetch: async (input, init) => {
      const response = await fetch(input, init)
      text = ''
      const decoder = new TextDecoder()
      const keep = new TransformStream<Uint8Array, Uint8Array>({
        transform: (bytes, controller) => {
          text += decoder.decode(bytes, { stream: true })
          controller.enqueue(bytes)
        },
      })
      return new Response(response.body?.pipeThrough(keep) ?? null, response)
    },
    nextLine: () => {
      const end = text.indexOf('\n')
      const line = text.slice(0, end)
      text = text.slice(end + 1)
      return parseWithAllDigits(line)
    },
  }
}
