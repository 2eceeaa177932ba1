import { setTimeout } from 'node:timers/promises'
import { inDatabase } from './database.ts'
import { ask, importPeople, type Target, UnexpectedResponse } from './requests.ts'

export const word = (): number => Math.floor(Math.random() * 1e9)
export const randomOf = <T>(values: readonly T[]): T => values[Math.floor(Math.random() * values.length)]!

/** A person as a line of an import, 370 bytes as stored. Every thousandth has the same area. */
export const formatLine = (name: string, n: number): string =>
  `{"external_id":"${name}","first_name":"First ${n}","last_name":"Last ${n}","email":"${name}@example.org",` +
  `"mobile_prefix":"+39","mobile_number":"${3_000_000_000 + word()}","language":"en",` +
  `"attribute_values":{"area":"area ${n % 1_000}","city":"city ${n}","score":${n},"note":"${'n'.repeat(60)}"}}\n`

/** The people `p1` … `p<people>` of an organization, and what the requests need of them. */
export type Population = {
  people: number
  consentTypeIds: readonly number[]
  /** Identifiers of every five hundredth person, in order. */
  ids: readonly string[]
}

const linesPerImport = 50_000

/** Declares the definitions that the rows use, and imports people. */
export async function populate(target: Target, url: string, people: number): Promise<Population> {
  const declare = async (kind: string, body: object) =>
    (await ask<{ id: number }>(target, { method: 'POST', path: `/v1/schema/${kind}`, body })).id
  await declare('attributes', { key: 'referrer', owner: 'people', type: 'person' })
  await declare('attributes', { key: 'area', owner: 'people', type: 'text', indexed: true })
  const channels = [{ channel: 'email' }, { channel: 'sms' }]
  const consentTypeIds = [
    await declare('consent-types', { key: 'surveys', channels }),
    await declare('consent-types', { key: 'offers', channels }),
  ]
  for (let first = 1; first <= people; first += linesPerImport) {
    const count = Math.min(linesPerImport, people - first + 1)
    const lines = Array.from({ length: count }, (_, index) => formatLine(`p${first + index}`, first + index))
    await importPeople(target, lines, 'created')
  }
  await waitForSearch(target, `Last ${people}`)
  await inDatabase(url, client => client.query('vacuum (analyze)'))
  await inDatabase(url, client => client.query('checkpoint'))
  return { people, consentTypeIds, ids: await readIds(target) }
}

/** Waits until the last person is found. A revision without search has nothing to wait for. */
async function waitForSearch(target: Target, text: string) {
  for (;;)
    try {
      const found = await ask<{ items: unknown[] }>(target, {
        method: 'POST',
        path: '/v1/people/search',
        body: { text, size: 1 },
      })
      if (found.items.length > 0) return
    } catch (error) {
      if (!(error instanceof UnexpectedResponse && [404, 405, 503].includes(error.status))) throw error
      if (error.status !== 503) return
    } finally {
      await setTimeout(200)
    }
}

async function readIds(target: Target): Promise<string[]> {
  const ids: string[] = []
  for (;;) {
    const body = {
      sorting_type: 'asc',
      cursor_configuration: { size: 500, ...(ids.length > 0 && { after_id: ids.at(-1) }) },
    }
    const page = await ask<{ items: { id: string }[]; has_more: boolean }>(target, {
      method: 'POST',
      path: '/v1/people/list',
      body,
    })
    if (!page.has_more) return ids
    ids.push(page.items.at(-1)!.id)
  }
}
