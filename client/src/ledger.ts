import { EndpointGroup } from './endpoint-group.ts'
import type { CallOptions } from './options.ts'
import { plainText } from './stream.ts'

/** The newest checkpoint of a ledger. */
export type LedgerCheckpoint = {
  /** The name of the log. */
  origin: string
  /** The number of sealed entries. */
  size: number
  /** The root hash of the tree, in base64. */
  root_hash: string
  /** The signed note, to keep elsewhere. */
  note: string
}

/** A key that verifies checkpoints and receipts. It signs new ones while `retired_at` is null. */
export type LedgerKey = { key: string; created_at: string; retired_at: string | null }

/** The transparency log of consent answers. The scope is `consents:read`. */
export class LedgerEndpoints extends EndpointGroup {
  /**
   * Reads the newest checkpoint: the size and the root hash of the ledger, signed. Its signature is not verified here.
   *
   * ```ts
   * const { note, origin } = await client.ledger.checkpoint()
   * console.log(note.startsWith(`${origin}\n`)) // true
   * ```
   */
  async checkpoint(options: CallOptions = {}): Promise<LedgerCheckpoint> {
    const path = '/v1/ledger/checkpoint'
    let note = ''
    for await (const text of this.transport.stream({ method: 'GET', path, options, format: plainText })) note += text
    const [origin = '', size, root_hash = ''] = note.split('\n')
    return { origin, size: Number(size), root_hash, note }
  }

  /**
   * Lists the keys of the ledger, newest first.
   *
   * ```ts
   * const [newest] = await client.ledger.keys()
   * console.log(newest?.retired_at) // null
   * ```
   */
  async keys(options?: CallOptions): Promise<LedgerKey[]> {
    return (await this.send('GET /v1/ledger/keys', {}, options)).keys
  }
}
