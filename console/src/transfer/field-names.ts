import type { Channel } from '@kith/client'
import { useMessages } from '../app/language.tsx'
import type { FixedField } from '../entity/field-labels.ts'
import { messages as entityMessages } from '../entity/messages.ts'
import { attributePrefix } from '../filters/field-types.ts'
import type { Targets } from './file-reader.ts'
import { messages } from './messages.ts'

/** Returns a function that returns the display name of a field, such as *Last name* or *Newsletter · Email*. */
export function useFieldNames(targets: Targets): (field: string) => string {
  const texts = useMessages(messages)
  const { fields, channels } = useMessages(entityMessages)
  return function nameOf(field): string {
    const target = targets.get(field)
    switch (target?.to) {
      case 'field':
        return fields[target.key as FixedField]
      case 'attribute':
        return target.label
      case 'consent':
        return `${target.label} · ${channels[target.channel as Channel]}`
      case 'evidence':
        return `${nameOf(target.consent)} · ${texts.evidence[target.key as keyof typeof texts.evidence]}`
      case 'attributes':
      case 'consents':
        return `${texts[target.to]} (JSON)`
      default:
        return field.startsWith(attributePrefix) ? field.slice(attributePrefix.length) : field
    }
  }
}
