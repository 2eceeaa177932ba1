import type { Static } from 'typebox'
import { channels } from '../values/channels.ts'
import { closedObject, count, flag, ifTrue, number, Type, text, time, uuid } from '../values/json-schema.ts'
import receiptExample from './receipt-example.json' with { type: 'json' }

const base64 = (description: string) =>
  Type.String({ pattern: '^[A-Za-z0-9+/]{43}=$', description: `${description}, in base64.` })

const exampleHash = '4SwmTv0EvD4GsZTv3pGCZ6gNzkS0CNGVsVJ8xjl8Ghk='

/** The response of GET /v1/ledger/checkpoint. */
export const checkpointText = Type.String({
  description: 'A checkpoint of C2SP tlog-checkpoint, signed as a C2SP signed-note.',
  examples: [
    'kith/default/6f1a3a52-8c1e-4d0f-9a59-0d2c54c7a1b3\n2\n4SwmTv0EvD4GsZTv3pGCZ6gNzkS0CNGVsVJ8xjl8Ghk=\n\n— kith/default/6f1a3a52-8c1e-4d0f-9a59-0d2c54c7a1b3 Az3grl…\n',
  ],
})

/** The response of GET /v1/ledger/tile. */
export const tileBytes = Type.String({
  examples: ['32 bytes for each hash'],
  description:
    'The hashes of the tile, 32 bytes each, or the data of entries, each after its length (two bytes, big-endian).',
})

/** The response of GET /v1/ledger/keys. */
export const ledgerKeys = Type.Object(
  {
    keys: Type.Array(
      Type.Object({
        key: text('The note key: name, key ID and public key, `name+hash+base64`.'),
        created_at: time(),
        retired_at: Type.Union([time(), Type.Null()], {
          description: 'When the key stopped signing. Null for the key that signs now.',
        }),
      }),
      { description: 'Newest first.' },
    ),
  },
  {
    title: 'LedgerKeys',
    examples: [
      {
        keys: [
          {
            key: 'kith/default/6f1a3a52-8c1e-4d0f-9a59-0d2c54c7a1b3+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k',
            created_at: '2026-01-01T12:00:00.000Z',
            retired_at: null,
          },
        ],
      },
    ],
  },
)

const hashes = (description: string) => Type.Array(base64('A hash'), { description })

/** The response of GET /v1/ledger/inclusion/{index}. */
export const inclusionProof = Type.Object(
  {
    index: count('The index of the entry.'),
    size: count('The size of the tree.'),
    leaf_hash: base64('The hash of the leaf'),
    hashes: hashes('The proof of RFC 6962, 2.1.1: from the leaf’s sibling to the root’s child.'),
    root_hash: base64('The root hash of the tree'),
  },
  {
    title: 'InclusionProof',
    examples: [{ index: 0, size: 2, leaf_hash: exampleHash, hashes: [exampleHash], root_hash: exampleHash }],
  },
)

/** The response of GET /v1/ledger/consistency/{old_size}. */
export const consistencyProof = Type.Object(
  {
    old_size: count('The size of the smaller tree.'),
    size: count('The size of the larger tree.'),
    old_root_hash: base64('The root hash of the smaller tree'),
    hashes: hashes('The proof of RFC 6962, 2.1.2.'),
    root_hash: base64('The root hash of the larger tree'),
  },
  {
    title: 'ConsistencyProof',
    examples: [{ old_size: 1, size: 2, old_root_hash: exampleHash, hashes: [exampleHash], root_hash: exampleHash }],
  },
)

/** The query of the proofs. */
export const sizeQuery = closedObject({
  size: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: Number.MAX_SAFE_INTEGER,
      description: 'The size of the tree that the proof leads to. The default is that of the newest checkpoint.',
    }),
  ),
})
export type SizeQuery = Static<typeof sizeQuery>

const optionalText = Type.Optional(text())

/**
 * An answer as the ledger seals it. `superseded`: it was collected before the answer in force, and changed no state.
 */
const ledgerEntry = Type.Object(
  {
    organization: text(),
    sequence: number('The number of the change in the change log.'),
    person_id: uuid(),
    consent_type_id: number(),
    channel: Type.Enum(channels),
    state: flag(),
    previous_state: Type.Optional(flag()),
    superseded: flag(),
    pending: Type.Optional(Type.Literal(true)),
    at: time(),
    collected_at: Type.Optional(time()),
    undated: ifTrue('An import gave the answer without its time, so nobody knows when it was collected.'),
    method: optionalText,
    source: optionalText,
    text_version: Type.Optional(number()),
    text_sha256: Type.Optional(Type.String({ pattern: '^[0-9a-f]{64}$' })),
    ip: optionalText,
    user_agent: optionalText,
    reference: optionalText,
    consent_string: optionalText,
    actor: optionalText,
    request_id: optionalText,
  },
  { title: 'LedgerEntry', description: 'The answer as the ledger sealed it. A member without a value is absent.' },
)
export type LedgerEntry = Static<typeof ledgerEntry>

/** The response of GET …/receipt. */
export const consentReceipt = Type.Object(
  {
    '@context': Type.Unknown({ description: 'The JSON-LD context: the terms of DPV 2.' }),
    '@type': Type.Literal('dpv:ConsentReceipt'),
    'dct:identifier': text('The origin of the ledger and the index of the entry.'),
    'dct:conformsTo': text('The format of the receipt.'),
    'dct:created': time('When the receipt was issued.'),
    'dpv:hasRecordOfActivity': Type.Unknown({ description: 'The consent record in the terms of DPV 2.' }),
    entry: ledgerEntry,
    salt: base64('The salt of the entry'),
    tlog_proof: text('A C2SP tlog-proof: the inclusion proof of the entry, and the checkpoint.'),
    verifier_key: text('The note key that signed the receipt and the checkpoint.'),
    jws: text('A JWS in compact form by the same key. Its payload has the hash of each other member.'),
  },
  {
    title: 'ConsentReceipt',
    description: 'The signed receipt of a consent answer. docs/receipts.md describes it.',
    examples: [receiptExample],
  },
)

/** The query of GET …/receipt. */
export const receiptQuery = closedObject({
  sequence: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: Number.MAX_SAFE_INTEGER,
      description: 'The number of the change that gave the answer. The default is the current answer.',
    }),
  ),
})
export type ReceiptQuery = Static<typeof receiptQuery>
