import { filterLimits } from '@kith/client'
import { incomingPrefix } from './field-types.ts'
import { isObject, operatorsIn, quantifierOf } from './read-filter.ts'

/** The parts of a filter that the API limits: conditions in total, levels of nesting, relationships in a row. */
export type FilterSize = { conditions: number; levels: number; relationships: number }

const empty: FilterSize = { conditions: 0, levels: 0, relationships: 0 }

const add = (one: FilterSize, other: FilterSize): FilterSize => ({
  conditions: one.conditions + other.conditions,
  levels: Math.max(one.levels, other.levels),
  relationships: Math.max(one.relationships, other.relationships),
})

/** Counts a filter as the API does. A segment counts as one condition. */
export function sizeOf(filter: unknown): FilterSize {
  if (!isObject(filter)) return empty
  const inner = Object.entries(filter).map(([name, operand]) => sizeOfMember(name, operand))
  const { levels, ...size } = inner.reduce(add, empty)
  return { ...size, levels: levels + 1 }
}

function sizeOfMember(name: string, operand: unknown): FilterSize {
  if (name === '$and' || name === '$or') return (Array.isArray(operand) ? operand : []).map(sizeOf).reduce(add, empty)
  if (name === '$not') return sizeOf(operand)
  if (['$segment', 'contactable', 'deliverability'].includes(name)) return { ...empty, conditions: 1 }
  if (name === 'consents') return { ...empty, conditions: 1 + testsOfConsent(operand) }
  const isIncoming = name.startsWith(incomingPrefix)
  return Object.entries(operatorsIn(operand))
    .map(([operator, value]): FilterSize => {
      const isQuantifier = quantifierOf(operator) !== undefined
      if (isQuantifier || (isIncoming && operator === '$where')) {
        const { conditions, levels, relationships } = sizeOf(value)
        return { conditions: conditions + (isQuantifier ? 1 : 0), levels, relationships: relationships + 1 }
      }
      if (!isIncoming) return { ...empty, conditions: 1 }
      const tested = operator === '$count' ? [value] : Object.values(isObject(value) ? value : {})
      const conditions = tested.map(countTests).reduce((sum, count) => sum + count, 0)
      return { conditions, levels: 0, relationships: 1 }
    })
    .reduce(add, empty)
}

const countTests = (operand: unknown): number => Object.keys(operatorsIn(operand)).length

function testsOfConsent(operand: unknown): number {
  const { $some } = isObject(operand) ? operand : {}
  const { text_version, method, answered_at } = isObject($some) ? $some : {}
  return [text_version, method, answered_at]
    .filter(tests => tests !== undefined)
    .map(countTests)
    .reduce((sum, count) => sum + count, 0)
}

/** Whether the filter comes so close to a limit that the next condition, level or relationship may be one too many. */
export const isNearLimit = ({ conditions, levels, relationships }: FilterSize): boolean =>
  conditions >= filterLimits.conditions - 10 ||
  levels >= filterLimits.depth ||
  relationships >= filterLimits.relationDepth
