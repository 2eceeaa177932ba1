import type { Attribute, Definitions } from '../../src/organizations/definitions.ts'
import { isDate, isDateTime } from '../../src/values/formats.ts'
import { eachFlag, eachText, kindOfText } from './profile.ts'

type Values = Record<string, unknown>

/** Finds operands that their field can never equal, according to the documentation. Returns their JSON Pointers. */
export function findMistypedOperands(
  filter: unknown,
  stack_id: number,
  definitions: Definitions,
  path = '/filter',
): string[] {
  return Object.entries(filter as Values).flatMap(([key, operand]) => {
    const pointer = `${path}/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`
    if (key === '$not') return findMistypedOperands(operand, stack_id, definitions, pointer)
    if (key === '$and' || key === '$or')
      return (operand as unknown[]).flatMap((one, index) =>
        findMistypedOperands(one, stack_id, definitions, `${pointer}/${index}`),
      )
    if (key === 'consents')
      return findMistypedConsent((operand as Values).$some as Values, definitions, `${pointer}/$some`)
    const attribute = definitions.declared.get(stack_id)?.get(key.slice('attribute_values.'.length))
    const field = key.startsWith('attribute_values.') ? kindOf(attribute) : { kind: fieldKinds[key]!, many: false }
    if (typeof operand !== 'object' || operand === null || Array.isArray(operand))
      return findMistyped(field, '$eq', operand, pointer)
    return Object.entries(operand).flatMap(([operator, value]) =>
      quantifiers.includes(operator)
        ? findMistypedOperands(value, attribute!.target_stack_id!, definitions, `${pointer}/${operator}`)
        : findMistyped(field, operator, value, `${pointer}/${operator}`),
    )
  })
}

const quantifiers = ['$some', '$none', '$every']

type Kind = 'text' | 'name' | 'number' | 'boolean' | 'date' | 'datetime' | 'any' | 'id' | 'record_id' | 'state'
type FieldKind = { kind: Kind; many: boolean }

const fieldKinds: Record<string, Kind> = {
  external_id: 'name',
  id: 'id',
  record_id: 'record_id',
  state: 'state',
  created_at: 'datetime',
  updated_at: 'datetime',
  ...eachText(kindOfText),
  ...eachFlag((): Kind => 'boolean'),
}

function kindOf(attribute: Attribute | undefined): FieldKind {
  if (!attribute) return { kind: 'any', many: false }
  const { type, cardinality } = attribute
  const kind = type === 'json' ? 'any' : type === 'person' || type === 'stack' ? 'name' : type
  return { kind, many: cardinality === 'many' }
}

const forms: Partial<Record<Kind, string>> = {
  date: 'dddd-dd-dd',
  id: 'xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx',
  record_id: 'x'.repeat(24),
}

function findMistyped(field: FieldKind, operator: string, operand: unknown, path: string): string[] {
  const { kind } = field
  if (operator === '$exists') return []
  if (operator === '$in' || operator === '$nin')
    return (operand as unknown[]).flatMap((value, index) => findMistyped(field, '$eq', value, `${path}/${index}`))
  if (operator === '$eq' || operator === '$neq') return findUnequal(field, operand, path)
  if (operator === '$contains' || operator === '$starts_with' || operator === '$ends_with') {
    const form = forms[kind]
    const fits = form ? isPart(operator, String(operand), form) : ['text', 'name', 'any'].includes(kind)
    return fits ? [] : [path]
  }
  if (kind === 'any') return typeof operand === 'string' || typeof operand === 'number' ? [] : [path]
  const hasOrder = kind !== 'boolean' && kind !== 'state'
  return hasOrder && (operand === '' ? kind === 'text' || kind === 'name' : canEqual(kind, operand)) ? [] : [path]
}

function findUnequal({ kind, many }: FieldKind, operand: unknown, path: string): string[] {
  if (operand === null || kind === 'any') return []
  if (!many || !Array.isArray(operand)) return canEqual(kind, operand) ? [] : [path]
  // A relationship without links is absent from the JSON.
  if (kind === 'name' && operand.length === 0) return [path]
  const wrong = operand.findIndex(element => !canEqual(kind, element))
  return wrong === -1 ? [] : [`${path}/${wrong}`]
}

function canEqual(kind: Kind, value: unknown): boolean {
  if (kind === 'number' || kind === 'boolean') return typeof value === kind
  if (typeof value !== 'string') return kind === 'any'
  if (kind === 'name') return value.length > 0
  if (kind === 'state') return ['active', 'placeholder'].includes(value)
  if (kind === 'date') return isDate(value)
  if (kind === 'datetime') return isDateTime(value)
  const form = forms[kind]
  return form === undefined || (value.length === form.length && isPart('$starts_with', value, form))
}

/**
 * Whether a text can occur at the start, at the end or anywhere in a form of `d` (digit), `x` (hexadecimal digit) and
 * `-`.
 */
function isPart(operator: string, text: string, form: string): boolean {
  const last = form.length - text.length
  const starts = operator === '$starts_with' ? [0] : operator === '$ends_with' ? [last] : [...form].map((_, at) => at)
  const letters: Record<string, string> = { d: '0123456789', x: '0123456789abcdefABCDEF', '-': '-' }
  return starts.some(
    start => start >= 0 && start <= last && [...text].every((c, at) => letters[form[start + at]!]!.includes(c)),
  )
}

function findMistypedConsent(
  { consent_type_id, channel }: Values,
  { consent_types }: Definitions,
  path: string,
): string[] {
  const activeChannels = consent_types
    .filter(({ state }) => state === 'active')
    .flatMap(({ id, channels }) => channels.map(one => ({ id, channel: one.channel })))
  const ofType = activeChannels.filter(({ id }) => consent_type_id === undefined || id === consent_type_id)
  if (consent_type_id !== undefined && ofType.length === 0) return [`${path}/consent_type_id`]
  const hasChannel = channel === undefined || ofType.some(one => one.channel === channel)
  return hasChannel ? [] : [`${path}/channel`]
}
