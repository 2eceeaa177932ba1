import { useState } from 'react'

/** What a field of a value needs. */
export type FieldProps<Value> = { name: string; onChange(value: Value): void } & ([Value] extends [boolean]
  ? { isSelected: Value }
  : { value: Value })

/**
 * Returns a function that gives a field what it needs for a member of a draft: its name, which is the member's path in the request below
 * `place`, its value, and what takes a new one.
 */
export const fieldsOf =
  <Draft extends object>(draft: Draft, change: (changed: Partial<Draft>) => void, place = '') =>
  <Name extends keyof Draft & string>(name: Name): FieldProps<Draft[Name]> => {
    const value = draft[name]
    return {
      name: `${place}/${name}`,
      onChange: (next: Draft[Name]) => change({ [name]: next } as unknown as Partial<Draft>),
      ...(typeof value === 'boolean' ? { isSelected: value } : { value }),
    } as unknown as FieldProps<Draft[Name]>
  }

/** The state of a form whose fields are members of the request. */
export function useDraft<Draft extends object>(initial: Draft | (() => Draft)) {
  const [draft, setDraft] = useState(initial)
  const change = (changed: Partial<Draft>) => setDraft(before => ({ ...before, ...changed }))
  return { draft, change, field: fieldsOf(draft, change) }
}
