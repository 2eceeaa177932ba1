type Target = { type: string; target_stack?: string | null }

export const isRelationship = ({ type }: Target): boolean => type === 'person' || type === 'stack'

/** The owner of the targets of a relationship: `people`, or the key of a stack. */
export const targetOwner = ({ type, target_stack }: Target): string =>
  type === 'person' ? 'people' : (target_stack ?? '')

/** Whether a value of a change is a target that was erased since. */
export const isErasedTarget = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && 'erased' in value && value.erased === true
