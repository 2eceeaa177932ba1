import type { BodyOf, OrganizationSchema, Owner } from './organization.ts'
import type { Detail, ErrorWord } from './wire.ts'

type Identifier<O> = O extends 'people' ? { id: string } : { record_id: string }
type Named<O> = ({ external_id: string } | Identifier<O>) & {
  /** The version that must stand, or `*`. */
  if_match?: number | '*'
}

/** One write of a batch. */
export type Operation<S extends OrganizationSchema, O extends Owner<S>> =
  | { op: 'create'; external_id?: string; body: BodyOf<S, O>; if_match?: never }
  | { op: 'upsert'; external_id: string; body: BodyOf<S, O>; if_match?: number | '*' }
  | ({ op: 'put' | 'patch'; body: BodyOf<S, O> } & Named<O>)
  | ({ op: 'delete' } & Named<O>)

/** What became of one write of a batch; `index` is its place in the request, `id` the internal identifier. */
export type BatchItem =
  | { index: number; status: 200 | 201; id: string; external_id: string | null; error?: never }
  | { index: number; status: number; error: ErrorWord; message: string; details: Detail[]; outcome?: 'unknown' }

/** What became of a batch; `failed` counts the items with an `error`. */
export type BatchResult = { items: BatchItem[]; failed: number }

/** As the service takes it: versions are entity tags there. */
export function batchBody(operations: readonly { if_match?: number | '*' }[], atomic: boolean | undefined): unknown {
  return { operations: operations.map(withTag), atomic }
}

function withTag<T extends { if_match?: number | '*' }>(operation: T): unknown {
  const { if_match } = operation
  return typeof if_match === 'number' ? { ...operation, if_match: `"${if_match}"` } : operation
}
