import { connect, type Socket } from 'node:net'

/** The status of a response, and whether it has a Retry-After. Undefined if the connection ended without a response. */
export type LoadResponse = { status: number; retryAfter: boolean } | undefined

/**
 * A keep-alive connection with one request at a time. It parses only as much of HTTP as it needs to find the end of a response. The
 * generator shares its cores with kith, and a client library uses more CPU than kith spends on a refusal: with undici, a storm of 5,600
 * requests a second waited in the generator (p99 2.5 and 7.8 s; here 0.9 s, with twice the rate). wrk sends at no rate, and does not
 * tell refusals from successes.
 */
export class Connection {
  readonly #socket: Socket
  readonly #onClose: (connection: Connection) => void
  #onResponse: ((response: LoadResponse, connection: Connection) => void) | undefined
  #received = ''

  /** `onClose` is called when the connection can no longer be used. */
  constructor(address: { host: string; port: number }, closed: (connection: Connection) => void) {
    this.#onClose = closed
    this.#socket = connect({ ...address, noDelay: true })
    this.#socket.setEncoding('latin1')
    this.#socket.on('data', part => this.#receive(part as unknown as string))
    this.#socket.on('error', () => {})
    this.#socket.once('close', () => this.#end())
  }

  /** Sends a request; `onResponse` is called once. */
  send(request: string, onResponse: (response: LoadResponse, connection: Connection) => void): void {
    this.#onResponse = onResponse
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
    const onResponse = this.#onResponse
    this.#onResponse = undefined
    const status = Number(received.slice(9, 12))
    const head = status < 400 ? '' : received.slice(0, headEnd).toLowerCase()
    // A response without a request would be mistaken for the response to the next one.
    if (!onResponse || head.includes('\r\nconnection: close')) {
      this.#socket.destroy()
      this.#onClose(this)
    }
    onResponse?.({ status, retryAfter: head.includes('\r\nretry-after: ') }, this)
  }

  #end() {
    this.#onClose(this)
    const onResponse = this.#onResponse
    this.#onResponse = undefined
    onResponse?.(undefined, this)
  }
}

function lengthOf(head: string): number {
  const at = head.search(/\r\ncontent-length: /i)
  return at < 0 ? 0 : Number.parseInt(head.slice(at + 18, at + 28), 10)
}
