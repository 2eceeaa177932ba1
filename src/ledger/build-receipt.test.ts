import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import jsonld from 'jsonld'
import { describe, expect, it } from 'vitest'
import { root } from '../../scripts/source.ts'
import { entry, names, origin, receiptOf, text } from '../../test/support/receipts.ts'
import type { Receipt } from './receipts.ts'
import type { LedgerEntry } from './schema.ts'

const dpv = 'https://w3id.org/dpv'
const term = (name: string) => `${dpv}#${name}`

/** Expands a receipt. Throws if a member has no meaning, or if the expansion needs another document. */
async function expand(receipt: Receipt): Promise<Record<string, unknown>> {
  const documentLoader = async (url: string): Promise<never> => {
    throw new Error(`the receipt needs ${url}`)
  }
  const nodes = await jsonld.expand(receipt as object, { documentLoader, safe: true } as jsonld.Options.Expand)
  expect(nodes).toHaveLength(1)
  return nodes[0] as Record<string, unknown>
}

/** All IRIs of an expanded document: properties, types and references. */
function irisOf(value: unknown): string[] {
  if (Array.isArray(value)) return value.flatMap(irisOf)
  if (typeof value === 'string') return /^\w+:/.test(value) ? [value] : []
  if (typeof value !== 'object' || value === null) return []
  if ('@value' in value) return []
  return Object.entries(value).flatMap(([key, inner]) => [key, ...irisOf(inner)])
}

/** The first value at a path of properties. */
const at = (node: unknown, ...path: string[]): Record<string, unknown> =>
  path.reduce<unknown>((value, property) => (value as Record<string, unknown[]>)[property]?.[0], node) as never

const recordOf = async (receipt: Receipt) => at(await expand(receipt), term('hasRecordOfActivity'))

const statusOf = async (change: Partial<LedgerEntry>) => {
  const record = await recordOf(await receiptOf({ entry: { ...entry, ...change } }))
  return at(record, term('hasConsentStatus'))['@type']
}

describe('The example of a receipt', () => {
  const read = (path: string) => readFileSync(join(root, path), 'utf8')

  it('in the contract is the receipt of the test data', async () => {
    expect(JSON.parse(read('src/ledger/receipt-example.json'))).toEqual(await receiptOf())
  })

  it('has the entry that docs/receipts.md shows', () => {
    const [, example] = /```json\n(\{[\s\S]*?\n\}\n)```/.exec(read('docs/receipts.md')) ?? []
    expect(JSON.parse(example!).entry).toEqual(JSON.parse(read('src/ledger/receipt-example.json')).entry)
  })
})

describe('A receipt as JSON-LD', () => {
  it('expands without the network to a consent receipt with one consent record', async () => {
    const node = await expand(await receiptOf())
    expect(node['@type']).toEqual([term('ConsentReceipt')])
    expect(node['http://purl.org/dc/terms/identifier']).toEqual([{ '@value': `${origin}/4` }])
    const record = at(node, term('hasRecordOfActivity'))
    expect(record['@type']).toEqual([term('ConsentRecord')])
    expect(at(record, term('hasDataSubject'))['@id']).toBe(`urn:uuid:${entry.person_id}`)
    expect(at(record, term('hasLegalBasis'))['@id']).toBe(`${dpv}/legal/eu/gdpr#A6-1-a`)
    expect(at(record, term('hasPersonalData'))['@id']).toBe(`${dpv}/pd#EmailAddress`)
    expect(at(record, term('hasNotice'), 'http://www.w3.org/1999/02/22-rdf-syntax-ns#value')).toEqual({
      '@value': text,
      '@language': 'en',
    })
    expect(Object.entries(node).find(([property]) => property.endsWith('#entry'))?.[1]).toEqual([
      { '@type': '@json', '@value': entry },
    ])
    expect(at(record, term('hasConsentStatus'), term('isIndicatedAtTime'))).toEqual({
      '@type': 'http://www.w3.org/2001/XMLSchema#dateTime',
      '@value': entry.collected_at,
    })
  })

  it('uses only terms that DPV 2.3 defines', async () => {
    const file = join(root, 'src/ledger/dpv-2.3-terms.jsonld')
    const defined = new Set((JSON.parse(readFileSync(file, 'utf8')) as { '@id': string }[]).map(node => node['@id']))
    const states = [{}, { pending: true as const }, { previous_state: true }, { state: false }]
    const receipts = await Promise.all([
      ...states.map(change => receiptOf({ entry: { ...entry, ...change } })),
      receiptOf({ entry: { ...entry, channel: 'sms', state: false, previous_state: true } }),
    ])
    const used = new Set((await Promise.all(receipts.map(expand))).flatMap(irisOf).filter(iri => iri.startsWith(dpv)))
    expect([...used].filter(iri => !defined.has(iri))).toEqual([])
    expect([...defined].filter(iri => !used.has(iri))).toEqual([])
  })

  it('has the state of the answer in the terms of DPV', async () => {
    expect(await statusOf({})).toEqual([term('ConsentGiven')])
    expect(await statusOf({ previous_state: false })).toEqual([term('ConsentGiven')])
    expect(await statusOf({ previous_state: true })).toEqual([term('RenewedConsentGiven')])
    expect(await statusOf({ state: false })).toEqual([term('ConsentRefused')])
    expect(await statusOf({ state: false, previous_state: true })).toEqual([term('ConsentWithdrawn')])
    expect(await statusOf({ pending: true })).toEqual([term('ConsentRequested')])
    expect(await statusOf({ state: false, previous_state: true, superseded: true })).toEqual([term('ConsentRefused')])
    expect(await statusOf({ previous_state: true, superseded: true })).toEqual([term('ConsentGiven')])
  })

  it('shows the time of the service if the client gave none, and no evidence that was not given', async () => {
    const { collected_at, method, source, text_version, text_sha256, ip, ...rest } = entry
    const record = await recordOf(await receiptOf({ entry: rest, names: { ...names, text: null } }))
    const status = at(record, term('hasConsentStatus'))
    expect(at(status, term('isIndicatedAtTime'))['@value']).toBe(entry.at)
    expect(status).not.toHaveProperty([term('hasIndicationMethod')])
    expect(record).not.toHaveProperty([term('hasNotice')])
  })

  it('shows names and texts with markup as they are', async () => {
    const consent_type = { key: 'ads', name: '<b>Ads</b>', description: '"><script>' }
    const record = await recordOf(await receiptOf({ names: { ...names, consent_type } }))
    const purpose = at(record, term('hasPurpose'))
    expect(at(purpose, 'http://purl.org/dc/terms/title')['@value']).toBe('<b>Ads</b>')
    expect(at(purpose, 'http://purl.org/dc/terms/description')['@value']).toBe('"><script>')
  })
})
