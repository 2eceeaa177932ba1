import { type Attribute, peopleStackId, type StackSummary } from '../organizations/definitions.ts'

type Declared = ReadonlyMap<string, Attribute> | undefined

/** A summary with its members in the order in which the database returns them, so that equal ones have equal texts. */
export const inStoredOrder = ({ time = null, person, measures }: StackSummary): StackSummary => ({
  time,
  person,
  measures: measures.map(({ op, key }) => ({ op, ...(key !== undefined && { key }) })),
})

/** Finds what a summary names that is not declared as it must be. */
export function findSummaryFault({ person, time, measures }: StackSummary, declared: Declared): string | undefined {
  const ofType = (key: string, types: readonly Attribute['type'][], what: string) => {
    const attribute = declared?.get(key)
    return attribute && types.includes(attribute.type) ? undefined : `names ${key}, which is not ${what} of the stack`
  }
  return [
    ofType(person, ['person'], 'a relationship to people'),
    time ? ofType(time, ['date', 'datetime'], 'a date or time') : undefined,
    ...measures.map(({ op, key }) => {
      if (key !== undefined) return ofType(key, ['number'], 'a number')
      return op === 'count' ? undefined : `has a ${op} without a key: name a number of the stack`
    }),
  ].find(fault => fault !== undefined)
}

/** Finds why a key cannot say with whom records are erased. */
export function findErasedWithFault(key: string, declared: Declared): string | undefined {
  if (declared?.get(key)?.target_stack_id === peopleStackId) return undefined
  return `names ${key}, which is not a relationship to people of the stack`
}
