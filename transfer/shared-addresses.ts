import type { MatchKind } from '../client/index.ts'
import type { ImportItem } from './item.ts'
import { parsedJson } from './parsed-json.ts'

/**
 * An address in more lines than this is a placeholder, such as `info@example.com`, or a family's. It identifies no
 * person.
 */
export const maxLinesOfAddress = 10

/** The maximum number of keys in memory. Further keys of a longer file are not counted. */
const maxKeys = 8_000_000

type Key = { kind: MatchKind; key: string }

/** The keys by which a line recognizes its person. Apart from notations of phones, they match those of the service. */
function keysOf({ body }: ImportItem, match: readonly MatchKind[]): Key[] {
  const fields = (parsedJson(body ?? '') ?? {}) as Record<string, unknown>
  const { external_id, email, mobile_prefix, mobile_number, match: own } = fields
  // A line with its own `match` keeps it.
  if (own !== undefined) return []
  const texts: Record<MatchKind, unknown> = {
    external_id,
    email: typeof email === 'string' ? email.normalize('NFC').toLowerCase() : undefined,
    mobile: typeof mobile_number === 'string' ? phoneOf(mobile_prefix, mobile_number) : undefined,
  }
  return match.flatMap(kind => {
    const text = String(texts[kind] ?? '').trim()
    return text === '' ? [] : [{ kind, key: `${kind} ${text}` }]
  })
}

function phoneOf(prefix: unknown, number: string): string {
  const digits = (text: unknown) => String(text ?? '').replace(/[^\d+]/g, '')
  const isWhole = /^\s*(?:\+|00)/.test(number)
  return (isWhole ? digits(number) : digits(prefix) + digits(number)).replace(/^(?:\+|00)/, '')
}

/** Counts the lines of each address, so that a line is not matched by an address that too many lines share. */
export class SharedAddresses {
  readonly #match: readonly MatchKind[]
  readonly #lines = new Map<string, number>()
  /** The number of lines with a shared address. */
  lines = 0

  constructor(match: readonly MatchKind[]) {
    this.#match = match
  }

  /** Reads a whole file. The import reads it again to send it. */
  async count(batches: AsyncIterable<ImportItem[]>, isStopped: () => boolean): Promise<void> {
    const kinds = this.#match.filter(kind => kind !== 'external_id')
    for await (const batch of batches) {
      if (isStopped()) return
      for (const item of batch)
        for (const { key } of keysOf(item, kinds)) {
          const lines = this.#lines.get(key)
          if (lines !== undefined || this.#lines.size < maxKeys) this.#lines.set(key, (lines ?? 0) + 1)
        }
    }
  }

  /**
   * Returns the item. If too many lines share one of its addresses, the item recognizes its person by its other values,
   * or without other values by `external_id` alone.
   */
  spare(item: ImportItem): ImportItem {
    const keys = keysOf(item, this.#match)
    const kept = keys.filter(({ key }) => (this.#lines.get(key) ?? 0) <= maxLinesOfAddress)
    if (kept.length === keys.length) return item
    this.lines++
    const match = kept.length === 0 ? ['external_id'] : kept.map(({ kind }) => kind)
    const body = item.body!.replace(/^\s*\{/, `{"match":${JSON.stringify(match)},`)
    return { ...item, body, recognizesNobody: kept.length === 0 }
  }

  async *spareAll(batches: AsyncIterable<ImportItem[]>): AsyncGenerator<ImportItem[]> {
    for await (const batch of batches) yield batch.map(item => this.spare(item))
  }
}

/** Counts the stored lines whose person an earlier line of the file had, as far as the file shows it. */
export class EarlierLines {
  readonly #match: readonly MatchKind[]
  readonly #seen = new Set<string>()
  count = 0

  constructor(match: readonly MatchKind[]) {
    this.#match = match
  }

  add(items: ImportItem[]): void {
    for (const item of items) {
      if (item.body === null || item.refusal) continue
      const keys = keysOf(item, this.#match)
      if (keys.some(({ key }) => this.#seen.has(key))) this.count++
      for (const { key } of keys) if (this.#seen.size < maxKeys) this.#seen.add(key)
    }
  }
}
