import { isKithError } from '@kith/client'
import { useMessages } from '../app/language.tsx'
import type { DraftFault, Field } from './fields.ts'
import { messages } from './messages.ts'

type FieldErrors = {
  errorOf(field: Field): string | undefined
  /** Whether the error says more than what stands at the fields. */
  hasOthers: boolean
}

const concerns = (field: Field, path: string) => path === field.path || path.startsWith(`${field.path}/`)

/** The reasons why values cannot be saved, at the fields that they concern: faults of drafts, and details of the service's refusal. */
export function useFieldErrors(
  fields: readonly Field[],
  faults: ReadonlyMap<string, DraftFault>,
  error: unknown,
): FieldErrors {
  const texts = useMessages(messages)
  const details = isKithError(error) ? error.details : []
  const messageOf = (field: Field, { path, message }: (typeof details)[number]) => {
    const inner = path.slice(field.path.length + 1)
    if (inner === '') return message
    const place = field.isMany && /^\d+$/.test(inner) ? texts.itemOf(field.label, Number(inner) + 1) : inner
    return `${place}: ${message}`
  }
  const errorOf = (field: Field) => {
    const fault = faults.get(field.path)
    if (fault) return fault.reason === 'json' ? texts.faults.json(fault.words) : texts.faults[fault.reason]
    const own = details.filter(({ path }) => concerns(field, path)).map(detail => messageOf(field, detail))
    return own.join(' ') || undefined
  }
  const isElsewhere = ({ path }: { path: string }) => !fields.some(field => concerns(field, path))
  return { errorOf, hasOthers: Boolean(error) && (details.length === 0 || details.some(isElsewhere)) }
}
