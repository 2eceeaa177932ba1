import { type Channel, type ConsentType, channels } from '../organizations/definitions.ts'
import { coerceText } from '../scalars.ts'
import type { OperandFault } from './operand-types.ts'

/** What a filter may ask of one consent of a person. */
export type ConsentOperand = { consent_type_id?: number; channel?: Channel; state?: boolean }

const parts: Record<string, { holds: (value: unknown) => boolean; message: string; coerced?: 'number' | 'boolean' }> = {
  consent_type_id: {
    holds: value => Number.isInteger(value) && Number(value) >= 1,
    message: 'must be an integer from 1',
    coerced: 'number',
  },
  channel: {
    holds: value => channels.some(channel => channel === value),
    message: `must be one of: ${channels.join(', ')}`,
  },
  state: { holds: value => typeof value === 'boolean', message: 'must be a boolean', coerced: 'boolean' },
}

/** The parts of a consent as a query string has them, in their types. */
export function consentFromQuery(operand: Record<string, unknown>): Record<string, unknown> {
  const read = ([name, value]: [string, unknown]) => {
    const coerced = Object.hasOwn(parts, name) ? parts[name]!.coerced : undefined
    return [name, coerced && typeof value === 'string' ? coerceText(value, coerced) : value]
  }
  return Object.fromEntries(Object.entries(operand).map(read))
}

/** What is wrong with the parts of a consent: their types, or that no person of the organization has such a consent. */
export function consentFault(
  operand: Record<string, unknown>,
  consent_types: readonly ConsentType[],
): OperandFault | undefined {
  for (const [name, value] of Object.entries(operand)) {
    const part = Object.hasOwn(parts, name) ? parts[name] : undefined
    if (!part) return { path: [name], message: 'unknown key' }
    if (!part.holds(value)) return { path: [name], message: part.message }
  }
  return absenceOf(operand as ConsentOperand, consent_types)
}

/** Reads show one consent for each active type and each of its channels. */
function absenceOf(
  { consent_type_id, channel }: ConsentOperand,
  consent_types: readonly ConsentType[],
): OperandFault | undefined {
  const hasChannel = (type: ConsentType) => channel === undefined || type.channels.some(one => one.channel === channel)
  if (consent_type_id === undefined) {
    const isThere = channel === undefined || consent_types.some(type => type.state === 'active' && hasChannel(type))
    return isThere ? undefined : { path: ['channel'], message: 'is a channel of no active consent type' }
  }
  const type = consent_types.find(({ id }) => id === consent_type_id)
  if (!type) return { path: ['consent_type_id'], message: 'is no consent type of the organization' }
  if (type.state === 'archived')
    return { path: ['consent_type_id'], message: 'is an archived consent type, for which nobody has a state' }
  if (hasChannel(type)) return undefined
  const own = type.channels.map(one => one.channel).join(', ')
  return { path: ['channel'], message: `is no channel of consent type ${consent_type_id}, which has: ${own}` }
}
