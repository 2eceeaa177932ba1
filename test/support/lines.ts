import type { Organization } from './service.ts'

export const ofLines = { 'Content-Type': 'application/x-ndjson' }

export type Counts = { received: number; created: number; updated: number; unchanged: number; failed: number }
export type Refused = { line: number; error: string; message: string; details: { path: string; message: string }[] }

/** Values as lines; texts and bytes go as they are. */
export const linesFrom = (values: readonly unknown[]): string =>
  values.map(value => `${typeof value === 'string' ? value : JSON.stringify(value)}\n`).join('')

/** Imports a body of lines, to its end. Progress is left out. */
export async function importLines(
  { send }: Pick<Organization, 'send'>,
  path: string,
  body: string | Uint8Array,
  headers: Record<string, string> = {},
): Promise<{ counts: Counts; refused: Refused[] }> {
  const answer = await send('POST', path, body, { ...ofLines, ...headers })
  if (answer.status !== 200) throw new Error(`${path} answered ${answer.status}: ${answer.body.message}`)
  const said = answer.body.data as object[]
  const refused = said.filter(line => 'line' in line) as Refused[]
  return { counts: said.at(-1) as Counts, refused }
}

/** All that an export shows. */
export async function exportAll(
  { send }: Pick<Organization, 'send'>,
  path: string,
): Promise<Record<string, unknown>[]> {
  const { status, body } = await send('POST', path)
  if (status !== 200) throw new Error(`${path} answered ${status}: ${body.message}`)
  return body.data
}
