type Target = { type: string; target_stack?: string | null }

export const isRelationship = ({ type }: Target): boolean => type === 'person' || type === 'stack'

/** The owner of the targets of a relationship: `people`, or the key of a stack. */
export const targetOwner = ({ type, target_stack }: Target): string =>
  type === 'person' ? 'people' : (target_stack ?? '')
