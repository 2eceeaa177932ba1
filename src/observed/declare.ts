import { attributeToJson, createAttribute } from '../attributes/attributes.ts'
import { type DefinitionCall, throwInvalidField, throwKeyTaken } from '../organizations/change-definitions.ts'
import { currentDefinitions } from '../organizations/definitions.ts'
import type { Scope } from '../route/scopes.ts'
import { mayRead, stackIdOf, undeclarable } from './observed.ts'
import type { DeclareBody, ObservedType } from './schema.ts'
import { countFittingSql } from './sql.ts'

const maxExamples = 10

/** The stored values that an attribute would accept or refuse. */
type Fitting = { fits: number; misfits: number; misfit_types: Record<ObservedType, number>; examples: string[] }

/**
 * Counts which stored values an attribute would accept, and declares it, unless it is a dry run. Throws a Fault of 400 or 409. If the
 * time does not suffice to count, nothing is declared.
 */
export async function declareObserved(
  call: DefinitionCall,
  { dry_run = false, ...declaration }: DeclareBody,
  { scopes }: { scopes: ReadonlySet<Scope> },
) {
  const { db, organization_id, signal } = call
  const { owner, key, type, cardinality = 'one' } = declaration
  const reason = undeclarable(key)
  if (reason) throwInvalidField('/key', reason)
  const definitions = await currentDefinitions(call, signal)
  const stack_id = stackIdOf(definitions, owner)
  if (definitions.declared.get(stack_id)?.has(key)) throwKeyTaken('is already declared for this owner')
  if (dry_run) await createAttribute({ ...call, isDryRun: true }, declaration)
  const values = [organization_id, stack_id, key, type, cardinality === 'many', maxExamples]
  const [fitting] = (await db.query<Fitting>(countFittingSql, values, signal)) as [Fitting]
  const examples = mayRead(scopes, stack_id) ? fitting.examples : []
  if (dry_run) return { attribute: null, ...fitting, examples }
  const created = await createAttribute(call, declaration)
  return { attribute: attributeToJson(created.attribute, created.definitions), ...fitting, examples }
}
