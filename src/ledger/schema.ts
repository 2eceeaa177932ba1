import { type Static, Type } from 'typebox'

const base64 = (description: string) =>
  Type.String({ pattern: '^[A-Za-z0-9+/]{43}=$', description: `${description}, in base64.` })

const exampleHash = '4SwmTv0EvD4GsZTv3pGCZ6gNzkS0CNGVsVJ8xjl8Ghk='
const number = (description: string) => Type.Integer({ minimum: 0, description })

/** The response of GET /v1/ledger/checkpoint. */
export const checkpointText = Type.String({
  description: 'A checkpoint of C2SP tlog-checkpoint, signed as a C2SP signed-note.',
  examples: [
    'kith/default/6f1a3a52-8c1e-4d0f-9a59-0d2c54c7a1b3\n2\n4SwmTv0EvD4GsZTv3pGCZ6gNzkS0CNGVsVJ8xjl8Ghk=\n\n— kith/default/6f1a3a52-8c1e-4d0f-9a59-0d2c54c7a1b3 Az3grl…\n',
  ],
})

/** The response of GET /v1/ledger/tile. */
export const tileBytes = Type.String({
  description:
    'The hashes of the tile, 32 bytes each, or the data of entries, each after its length (two bytes, big-endian).',
})

/** The response of GET /v1/ledger/keys. */
export const ledgerKeys = Type.Object(
  {
    keys: Type.Array(
      Type.Object({
        key: Type.String({ description: 'The note key: name, key ID and public key, `name+hash+base64`.' }),
        created_at: Type.String({ format: 'date-time' }),
        retired_at: Type.Union([Type.String({ format: 'date-time' }), Type.Null()], {
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
    index: number('The index of the entry.'),
    size: number('The size of the tree.'),
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
    old_size: number('The size of the smaller tree.'),
    size: number('The size of the larger tree.'),
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
export const sizeQuery = Type.Object(
  {
    size: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: Number.MAX_SAFE_INTEGER,
        description: 'The size of the tree that the proof leads to. The default is that of the newest checkpoint.',
      }),
    ),
  },
  { additionalProperties: false },
)
export type SizeQuery = Static<typeof sizeQuery>
