import type { Channel, Definitions } from '@kith/client'
import { useMemo } from 'react'
import { targetsOf } from '../../../transfer/columns.ts'
import { useMessages } from '../app/language.tsx'
import type { FixedField } from '../entity/field-labels.ts'
import { messages as entityMessages } from '../entity/messages.ts'
import { attributePrefix } from '../filters/field-types.ts'
import { messages } from './messages.ts'

/** Returns a function that has the name of a field for people, such as *Last name* or *Newsletter · Email*. */
export function useFieldNames(owner: string, definitions: Definitions): (field: string) => string {
  const texts = useMessages(messages)
  const { fields, channels } = useMessages(entityMessages)
  const targets = useMemo(() => targetsOf(owner, definitions), [owner, definitions])
  return field => {
    const target = targets.get(field)
    switch (target?.to) {
      case 'field':
        return fields[target.key as FixedField]
      case 'attribute':
        return target.label
      case 'consent':
        return `${target.label} · ${channels[target.channel as Channel]}`
      case 'evidence': {
        const consent = targets.get(target.consent)
        const name = consent?.to === 'consent' ? `${consent.label} · ${channels[consent.channel as Channel]}` : ''
        return `${name} · ${texts.evidence[target.key as keyof typeof texts.evidence]}`
      }
      case 'attributes':
        return `${texts.attributes} (JSON)`
      case 'consents':
        return `${texts.consents} (JSON)`
      default:
        return field.startsWith(attributePrefix) ? field.slice(attributePrefix.length) : field
    }
  }
}
