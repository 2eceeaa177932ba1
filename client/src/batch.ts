import type { BodyOf, NewBodyOf, OrganizationSchema, Owner, PatchOf } from './organization.ts'
import type { Detail, ErrorCode } from './wire.ts'

type Identifier<O> = O extends 'people' ? { id: string } : { record_id: string }
type Target<O> = ({ external_id: string } | Identifier<O>) & {
  /** The version that the entity must have, or `*` for any. */
  if_match?: number | '*'
}

/** One write of a batch. */
export type Operation<S extends OrganizationSchema, O extends Owner<S>> =
  | { op: 'create'; external_id?: string; body: NewBodyOf<S, O>; if_match?: never }
  | { op: 'upsert'; external_id: string; body: PatchOf<S, O>; if_match?: number | '*' }
  | ({ op: 'put'; body: BodyOf<S, O> } & Target<O>)
  | ({ op: 'patch'; body: PatchOf<S, O> } & Target<O>)
  | ({ op: 'delete' } & Target<O>)

/** The result of one write of a batch. `index` is its position in the request, `id` the internal identifier. */
export type BatchItem =
  | { index: number; status: 200 | 201; id: string; external_id: string | null; error?: never }
  | {
      index: number
      status: number
      error: ErrorCode
      message: string
      details: Detail[]
      reason?: 'erased'
      outcome?: 'unknown'
    }

/** The result of a batch. `failed` counts the items with an `error`. */
export type BatchResult = { items: BatchItem[]; failed: number }

/** The body of the request, with versions as entity tags. */
export function batchBody(operations: readonly { if_match?: number | '*' }[], options: object): unknown {
  return { operations: operations.map(withTag), ...options }
}

function withTag<T extends { if_match?: number | '*' }>(operation: T): unknown {
  const { if_match } = operation
  return typeof if_match === 'number' ? { ...operation, if_match: `"${if_match}"` } : operation
}
