import type { Static } from 'typebox'
import {
  closedObject,
  count,
  flag,
  nullable,
  number,
  optionals,
  pageOf,
  storedNumber,
  Type,
  text,
  time,
  uuid,
} from '../../values/json-schema.ts'

/** Body of the erasure of a person. */
export const eraseBody = Type.Object(
  {
    reason: Type.String({
      minLength: 1,
      maxLength: 2_000,
      description: 'Why the person is erased. It stays, so it must not name the person.',
    }),
    ...optionals({
      records: Type.Enum(['keep', 'linked'], {
        description:
          '`linked`: also erase the records that a link joins to this person and to nobody else. The default is `keep`.',
      }),
      override_hold: flag('Erase the person although it is under a legal hold.'),
      dry_run: flag('Erase nothing, and return what an erasure would remove.'),
    }),
  },
  { additionalProperties: false, title: 'ErasureBody', examples: [{ reason: 'Request of 2026-01-01', dry_run: true }] },
)
export type EraseBody = Static<typeof eraseBody>

const erasure = Type.Object({
  id: nullable(number('Null in a dry run.')),
  at: time(),
  person_id: uuid('The internal identifier, which stays.'),
  merged_ids: Type.Array(uuid(), {
    description: 'The people who were merged into the person.',
  }),
  record_ids: Type.Array(Type.Object({ stack_key: text(), record_id: text() }), {
    description: 'The records that were erased with the person.',
  }),
  reason: text(),
  records: Type.Enum(['keep', 'linked']),
  removed: Type.Record(text(), count(), {
    description: 'The number of rows that were deleted or whose values were taken, by table.',
  }),
  tombstones: count(
    'The number of keyed hashes of identifiers that stay, so that the person does not come back by mistake.',
  ),
  not_removed: Type.Array(text(), {
    description: 'Places outside of the tables of kith that may still hold the data.',
  }),
})

const exampleErasure = {
  id: 1,
  at: '2026-01-01T12:00:00.000Z',
  person_id: '01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e4f',
  merged_ids: [],
  record_ids: [],
  reason: 'Request of 2026-01-01',
  records: 'keep',
  removed: { changes: 3, consent_history: 1, entities: 1, ledger_entries: 1 },
  tombstones: 2,
  not_removed: ['backups'],
}

const exampleCertificate = 'eyJhbGciOiJFZERTQSJ9.e30.c2ln'
const exampleOutcome = { certificate: exampleCertificate, completed: true, dry_run: false }

const certificate = text(
  'The same facts, signed by the key of the ledger: a compact JWS. `kith verify` verifies it without a server.',
)

/** The internal identifiers of people who had the same external identifier. */
export const otherHolders = Type.Array(uuid(), {
  description:
    'The other people who once had the external identifier of the path and were deleted, but not erased: at most 100, the last one ' +
    'first. Empty if the path has the internal identifier. See docs/rights.md.',
})

/** The answer of an erasure. */
export const erased = Type.Object(
  {
    certificate: nullable(certificate),
    completed: flag(),
    dry_run: flag(),
    erasure,
    other_holders: otherHolders,
  },
  {
    title: 'Erased',
    description:
      'The data that an erasure removed. `certificate` is null in a dry run, and while a long log is being erased.',
    examples: [{ ...exampleOutcome, erasure: exampleErasure, other_holders: [] }],
  },
)

/** The query of the list of erasures. */
export const erasuresQuery = closedObject({
  before: Type.Optional(storedNumber('Only erasures before this id.')),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 500, description: 'The default is 50.' })),
})
export type ErasuresQuery = Static<typeof erasuresQuery>

/** An erasure as the list shows it. */
const listedErasure = Type.Object(
  {
    id: number(),
    at: time(),
    person_id: uuid(),
    actor: text('The subject of the token that erased.'),
    reason: text(),
    records: Type.Enum(['keep', 'linked']),
    completed_at: nullable(time('Null while the log of a person with very many changes or links is being erased.')),
    certificate: nullable(certificate),
  },
  { title: 'Erasure', description: 'An erasure of a person.' },
)

const { id, at, person_id, reason, records } = exampleErasure

/** A page of erasures, newest first. */
export const erasurePage = pageOf(listedErasure, 'ErasurePage', 'A page of erasures, newest first.', [
  { id, at, person_id, actor: 'privacy desk', reason, records, completed_at: at, certificate: exampleCertificate },
])
