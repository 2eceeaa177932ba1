import type { Organization } from './service.ts'

/** The header of a body in NDJSON. */
export const ndjsonHeaders = { 'Content-Type': 'application/x-ndjson' }

export type ImportCounts = { received: number; created: number; updated: number; unchanged: number; failed: number }
export type RejectedLine = {
  line: number
  error: string
  message: string
  details: { path: string; message: string }[]
}

/** Writes each value as a line of JSON. A string becomes a line as it is. */
export const linesFrom = (values: readonly unknown[]): string =>
  values.map(value => `${typeof value === 'string' ? value : JSON.stringify(value)}\n`).join('')

/**
 * Imports a body of lines. Returns the final counts, the number of a change, and the rejected lines, without progress lines. Throws at any
 * status but 200.
 */
export async function importLines(
  { send }: Pick<Organization, 'send'>,
  path: string,
  body: string | Uint8Array,
  headers: Record<string, string> = {},
): Promise<{ counts: ImportCounts; sequence: number | undefined; refused: RejectedLine[] }> {
  const answer = await send('POST', path, body, { ...ndjsonHeaders, ...headers })
  if (answer.status !== 200) throw new Error(`${path} returned ${answer.status}: ${answer.body.message}`)
  const lines = answer.body.data as object[]
  const refused = lines.filter(line => 'line' in line) as RejectedLine[]
  const { sequence, ...counts } = lines.at(-1) as ImportCounts & { sequence?: number }
  return { counts, sequence, refused }
}

/** Reads an export. Returns all its entities. Throws at any status but 200. */
export async function exportAll(
  { send }: Pick<Organization, 'send'>,
  path: string,
): Promise<Record<string, unknown>[]> {
  const { status, body } = await send('POST', path)
  if (status !== 200) throw new Error(`${path} returned ${status}: ${body.message}`)
  return body.data
}
