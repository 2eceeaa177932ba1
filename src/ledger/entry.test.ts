import { createHash } from 'node:crypto'
import canonicalize from 'canonicalize'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { canonicalJson } from '../../client/src/ledger-text.ts'
import { buildEntry, leafData } from './entry.ts'

const values = {
  organization: 'default',
  sequence: 7,
  person_id: '01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e4f',
  consent_type_id: 1,
  channel: 'email' as const,
  state: true,
  previous_state: null,
  superseded: false,
  pending: null,
  at: '2026-11-22T08:00:00.000Z',
  collected_at: '2026-11-21T08:00:00.000Z',
  undated: null,
  method: 'web_form',
  source: 'Zürich €',
  text_version: null,
  text_sha256: undefined,
  ip: null,
  user_agent: null,
  reference: null,
  consent_string: null,
  actor: 'website',
  request_id: 'r-1',
}

/** The members in the order of RFC 8785, which sorts by name. */
const canonical =
  '{"actor":"website","at":"2026-11-22T08:00:00.000Z","channel":"email","collected_at":"2026-11-21T08:00:00.000Z",' +
  '"consent_type_id":1,"method":"web_form","organization":"default","person_id":"01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e4f",' +
  '"request_id":"r-1","sequence":7,"source":"Zürich €","state":true,"superseded":false}'

describe('An entry of the ledger', () => {
  it('has the members that are given, and no others', () => {
    const {
      previous_state,
      pending,
      undated,
      text_version,
      text_sha256,
      consent_string,
      ip,
      user_agent,
      reference,
      ...given
    } = values
    expect(buildEntry(values)).toEqual(given)
    expect(Object.keys(buildEntry(values))).not.toContain('previous_state')
    expect(buildEntry({ ...values, previous_state: false })).toHaveProperty('previous_state', false)
  })

  it('is sealed as the hash of its salt and its canonical JSON', () => {
    const salt = Buffer.alloc(32, 9)
    const data = createHash('sha256')
      .update(Buffer.concat([salt, Buffer.from(canonical)]))
      .digest()
    expect(leafData(salt, buildEntry(values))).toEqual(data)
  })

  it('is sealed the same in any order of its members', () => {
    const entry = buildEntry(values)
    fc.assert(
      fc.property(fc.shuffledSubarray(Object.entries(entry), { minLength: Object.keys(entry).length }), members => {
        const salt = Buffer.alloc(32)
        expect(leafData(salt, Object.fromEntries(members))).toEqual(leafData(salt, entry))
      }),
    )
  })

  it('is sealed otherwise with another salt or another member', () => {
    const entry = buildEntry(values)
    const data = leafData(Buffer.alloc(32), entry)
    expect(leafData(Buffer.alloc(32, 1), entry)).not.toEqual(data)
    expect(leafData(Buffer.alloc(32), { ...entry, state: false })).not.toEqual(data)
    expect(leafData(Buffer.alloc(32), { ...entry, reference: 'order 1' })).not.toEqual(data)
  })

  it('is not sealed with a salt of another length', () => {
    expect(() => leafData(Buffer.alloc(31), buildEntry(values))).toThrow(RangeError)
  })
})

it('canonical JSON is that of RFC 8785', () => {
  fc.assert(fc.property(fc.jsonValue(), value => void expect(canonicalJson(value)).toBe(canonicalize(value))))
})
