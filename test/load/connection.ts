import { connect, type Socket } from 'node:net'

/** What came back: the status, and whether a Retry-After was with it. Undefined: the connection ended without an answer. */
export type Answer = { status: number; retryAfter: boolean } | undefined

/**
 * A keep-alive connection with one request at a time, and no more of HTTP than it takes to tell where an answer ends:
 * the generator shares its machine with the service, and what it uses the service has not. An HTTP client would cost more
 * than the service spends on a refusal.
 */
export class Connection {
  readonly #socket: Socket
  readonly #closed: (connection: Connection) => void
  #taken: ((answer: Answer, connection: Connection) => void) | undefined
  #received = ''

  /** `closed` is told once, when it can be used no more. */
  constructor(address: { host: string; port: number }, closed: (connection: Connection) => void) {
    this.#closed = closed
    this.#socket = connect({ ...address, noDelay: true })
    this.#socket.setEncoding('latin1')
    this.#socket.on('data', part => this.#receive(part as unknown as string))
    this.#socket.on('error', () => {})
    this.#socket.once('close', () => this.#end())
  }

  /** Sends a request; `taken` is called once, with its answer. */
  send(request: string, taken: (answer: Answer, connection: Connection) => void): void {
    this.#taken = taken
    this.#socket.write(request, 'latin1')
  }

  destroy(): void {
    this.#socket.destroy()
  }

  #receive(part: string) {
    const received = this.#received === '' ? part : this.#received + part
    const headEnd = received.indexOf('\r\n\r\n')
    if (headEnd < 0 || received.length < headEnd + 4 + lengthOf(received)) {
      this.#received = received
      return
    }
    this.#received = ''
    const taken = this.#taken
    this.#taken = undefined
    const status = Number(received.slice(9, 12))
    const head = status < 400 ? '' : received.slice(0, headEnd).toLowerCase()
    // An answer that nobody asked for would be taken for that of the next request.
    if (!taken || head.includes('\r\nconnection: close')) {
      this.#socket.destroy()
      this.#closed(this)
    }
    taken?.({ status, retryAfter: head.includes('\r\nretry-after: ') }, this)
  }

  #end() {
    this.#closed(this)
    const taken = this.#taken
    this.#taken = undefined
    taken?.(undefined, this)
  }
}

function lengthOf(head: string): number {
  const at = head.search(/\r\ncontent-length: /i)
  return at < 0 ? 0 : Number.parseInt(head.slice(at + 18, at + 28), 10)
}
