import { isUuid } from '../../values/formats.ts'
import { parsePlace, printPlace } from '../../values/parse-json.ts'

/** The order of a page: by a field, or by the identifier without one. */
export type PageOrder = { field?: string | undefined; direction: 'asc' | 'desc' }

/** A position in the order of a page: the last entity before it and, in the order of a field, its sort term. */
type CursorPlace = { after_id: string; after_term?: string | undefined }

/** The maximum length of a cursor: a key of 255 characters and a term of 130, which JSON and UTF-8 may lengthen. */
export const maxCursorCharacters = 4_096

/** Encodes a position as the `cursor` of a request. It is valid only in the same order. */
export function encodeCursor({ field, direction }: PageOrder, { after_id, after_term }: CursorPlace): string {
  return printPlace([field ?? null, direction, after_term ?? null, after_id])
}

/** Decodes a cursor. Returns `invalid` for a malformed one, and `other order` for one of another order. */
export function decodeCursor(cursor: string, order: PageOrder): CursorPlace | 'invalid' | 'other order' {
  const parts = parsePlace(cursor)
  if (parts.length !== 4 || Buffer.from(cursor, 'base64url').toString('base64url') !== cursor) return 'invalid'
  const [field, direction, term, after_id] = parts
  if (typeof after_id !== 'string' || !isUuid(after_id)) return 'invalid'
  if (field !== (order.field ?? null) || direction !== order.direction) return 'other order'
  if (field === null) return term === null ? { after_id: after_id.toLowerCase() } : 'invalid'
  if (typeof term !== 'string' || !term.isWellFormed() || term.includes('\0')) return 'invalid'
  return { after_id: after_id.toLowerCase(), after_term: term }
}
