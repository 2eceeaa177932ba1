import { type FieldType, isTime } from './filter-tree.ts'
import { isRelative } from './relative-time.ts'

/** An operand that the builder cannot show as a text. */
export const notShown = Symbol('not shown')

/** The text of an operand in its field, or `notShown` if the field's type has no such operand. */
export function textOfOperand(type: FieldType, operand: unknown): string | typeof notShown {
  if (type === 'json') {
    if (typeof operand === 'string') return isJson(operand) ? JSON.stringify(operand) : operand
    return typeof operand === 'number' || typeof operand === 'boolean' ? String(operand) : notShown
  }
  if (isTime(type)) {
    if (isRelative(operand)) return JSON.stringify(operand)
    // A brace begins the text of a relative time.
    return typeof operand === 'string' && !operand.startsWith('{') ? operand : notShown
  }
  const expected = type === 'number' || type === 'boolean' ? type : 'string'
  return typeof operand === expected ? String(operand) : notShown
}

/** The operand that a text stands for, or undefined if the text is not complete. */
export function operandOfText(type: FieldType, text: string): string | number | boolean | object | undefined {
  if (text === '') return undefined
  if (type === 'json') return scalarOfJson(text)
  if (type === 'number') {
    const value = Number(text.trim())
    return text.trim() !== '' && Number.isFinite(value) ? value : undefined
  }
  if (type === 'boolean') return text === 'true'
  if (isTime(type) && text.startsWith('{')) {
    const operand = JSON.parse(text) as object
    return isRelative(operand) ? operand : undefined
  }
  return text
}

function scalarOfJson(text: string): string | number | boolean {
  if (!isJson(text)) return text
  const value = JSON.parse(text) as unknown
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' ? value : text
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

/** The lines of the text of a list, without empty ones. */
export const linesOf = (text: string): string[] => text.split('\n').filter(line => line !== '')
