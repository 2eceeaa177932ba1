import type { CellType } from './cell-parser.ts'

/**
 * The target of a column: a field, an attribute, an answer to a consent, its evidence, or nothing. `name` identifies it
 * in messages. `label` is the name of the attribute or of the purpose in the schema.
 */
export type Target =
  | { to: 'nothing' }
  | { to: 'field'; name: string; key: string; type: CellType; prefix?: string }
  | { to: 'attribute'; name: string; key: string; label: string; type: CellType; many: boolean; prefix?: string }
  | { to: 'consent'; name: string; label: string; isOnlyChannel: boolean; consent_type_id: number; channel: string }
  | { to: 'evidence'; name: string; consent: string; key: string; type: CellType; prefix?: string }
  | { to: 'attributes'; name: string }
  | { to: 'consents'; name: string }
