import { createHash } from 'node:crypto'
import { type SortField, sortFieldNames, sortFieldOf } from '../../entities/indexes/sort-field.ts'
import { type Definitions, isRelationship, peopleStackId } from '../../organizations/definitions.ts'
import type { Rights } from '../../route/field-rights.ts'
import type { AttributeType } from '../../values/attribute-rules.ts'
import { pointer, throwValueRefusal } from '../../values/errors.ts'
import { attributePrefix } from '../../values/profile-fields.ts'
import type { MeasuredSortBody, SortBody } from '../schema.ts'
import { incomingPrefix } from './fields.ts'
import { suggestField } from './scopes.ts'

/** The order of a page by a field. `type` is that of the attribute, or `text`. */
export type Sort = { name: string; field: SortField; type: AttributeType; direction: 'asc' | 'desc' }

/** Whether a page is sorted by a measure. Throws a Fault of 400 for a `where` without one. */
export function isMeasured(sort: SortBody): sort is MeasuredSortBody {
  if (sort.measure === undefined && sort.where !== undefined)
    throwUnsortable('selects what `measure` measures, which is absent', 'where')
  return sort.measure !== undefined
}

/** The name of an order in cursors. It includes a measure and its selection. */
export function orderName(sort: SortBody): string {
  if (!isMeasured(sort)) return sort.field
  const measured = JSON.stringify([sort.measure.op, sort.measure.field, sort.where])
  return `${sort.field} ${createHash('sha256').update(measured).digest('base64url')}`
}

/** Parses `sort` of a request. Throws a Fault of 400 with the path for a field that cannot sort. */
export function parseSort(
  { field: name, direction = 'asc' }: SortBody,
  definitions: Definitions,
  stack_id: number,
  caller?: Rights,
): Sort {
  const names = sortFieldNames(stack_id)
  const hint = () => suggestField(caller, definitions, { stack_id, name, names })
  const field = sortFieldOf(name, stack_id)
  if (!field) {
    if (name.startsWith(incomingPrefix)) return throwUnsortable('needs `measure`, such as {"op": "count"}')
    const noun = stack_id === peopleStackId ? 'people' : 'records'
    return throwUnsortable(
      `is not a field that sorts ${noun}: use ${names.join(', ')} or ${attributePrefix}<key>${hint()}`,
    )
  }
  if (field.kind !== 'attribute') return { name, field, type: 'text', direction }
  const attribute = definitions.declared.get(stack_id)?.get(field.key)
  if (!attribute)
    return throwUnsortable(`is not a declared attribute. Only a declared, indexed attribute sorts a page${hint()}`)
  if (isRelationship(attribute))
    return throwUnsortable('is a relationship, which has no order: sort by an attribute with one value')
  if (attribute.type === 'json')
    return throwUnsortable('has type `json`, which has no order: sort by an attribute of another type')
  if (attribute.cardinality === 'many')
    return throwUnsortable('has cardinality `many`, which has no order: sort by an attribute with one value')
  if (!attribute.indexed)
    return throwUnsortable(`is not indexed: PATCH /v1/schema/attributes/${attribute.id} {"indexed": true}`)
  return { name, field, type: attribute.type, direction }
}

function throwUnsortable(message: string, member = 'field'): never {
  return throwValueRefusal(pointer('sort', member), message, 'The page cannot be sorted by this field.')
}
