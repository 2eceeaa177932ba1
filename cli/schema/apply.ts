import { setTimeout } from 'node:timers/promises'
import { type AttributePatch, type Client, isKithError, type KithError } from '../../client/index.ts'
import { maxBatchedAttributes } from '../../src/attributes/schema.ts'
import type { Create, Step } from './plan.ts'

/** Steps of one request: consecutive new attributes are created together, all or none. */
export type StepGroup = readonly [Step, ...Step[]]

/** The maximum number of characters of the attributes in a request, whose body may have 8 MiB. */
const maxCharacters = 2_000_000

/** Groups the steps without changing their order. */
export function groupSteps(steps: readonly Step[]): StepGroup[] {
  const groups: [Step, ...Step[]][] = []
  let characters = 0
  for (const step of steps) {
    const group = groups.at(-1)
    characters += JSON.stringify(step).length
    const hasRoom = group && group.length < maxBatchedAttributes && characters <= maxCharacters
    if (hasRoom && createsAttribute(step) && createsAttribute(group[0])) group.push(step)
    else {
      groups.push([step])
      characters = JSON.stringify(step).length
    }
  }
  return groups
}

type CreateAttribute = Extract<Create, { kind: 'attribute' }>

const createsAttribute = (step: Step): step is CreateAttribute => step.action === 'create' && step.kind === 'attribute'

/**
 * Applies a group of steps. A push that was interrupted is completed by the next one, which plans again from the current schema.
 * Throws what the client throws, such as a KithError with `duplicate_entry` if another client has created the same definition.
 */
export async function applySteps(client: Client, group: StepGroup): Promise<void> {
  const [step] = group
  if (createsAttribute(step)) return createAttributes(client.schema, group.filter(createsAttribute))
  if (step.action === 'create') return create(client, step)
  const { schema, segments } = client
  const patch = Object.fromEntries(Object.entries(step.fields).map(([field, { after }]) => [field, after]))
  if (step.kind === 'stack') await schema.stacks.patch(String(step.id), patch)
  if (step.kind === 'attribute') await patchAttribute(schema, Number(step.id), patch)
  if (step.kind === 'consent_type') await schema.consentTypes.patch(Number(step.id), patch)
  if (step.kind === 'segment') await segments.patch(String(step.id), patch)
}

async function create({ schema, segments }: Client, step: Exclude<Create, CreateAttribute>) {
  // The service checks the filter, because the type of the file accepts any filter.
  if (step.kind === 'segment') await segments.create(step.definition as Parameters<typeof segments.create>[0])
  if (step.kind === 'stack') await schema.stacks.create(step.definition)
  if (step.kind === 'consent_type') {
    const { state, ...body } = step.definition
    const { id } = await schema.consentTypes.create(body)
    // A new consent type is always active, so it is archived after its creation.
    if (state === 'archived') await schema.consentTypes.patch(id, { state })
  }
}

/** Declares attributes. An attribute whose stored values need an index becomes unique when kith has filled it. */
async function createAttributes({ attributes }: Client['schema'], steps: readonly CreateAttribute[]) {
  const bodies = steps.map(({ definition: { state, ...body } }) => body)
  try {
    await attributes.batch(bodies)
  } catch (error) {
    if (!isNotReady(error)) throw error
    const later = new Set(error.details.map(({ path }) => indexOf(path)!))
    const { items } = await attributes.batch(
      bodies.map((body, index) => (later.has(index) ? { ...body, unique: false } : body)),
    )
    for (const index of later) await makeUnique(attributes, items[index]!.id)
  }
}

/** The element of a batch that a path such as `/items/3/key` is in. Undefined for another path. */
export function indexOf(path: string): number | undefined {
  const [, index] = /^\/items\/(\d+)\//.exec(path) ?? []
  return index === undefined ? undefined : Number(index)
}

async function patchAttribute({ attributes }: Client['schema'], id: number, patch: AttributePatch) {
  try {
    await attributes.patch(id, patch)
  } catch (error) {
    if (!isNotReady(error)) throw error
    await attributes.patch(id, { ...patch, unique: false })
    await makeUnique(attributes, id)
  }
}

/** Whether an attribute cannot be unique yet, because its index is not filled. */
const isNotReady = (error: unknown): error is KithError =>
  isKithError(error) && error.status === 409 && error.code === 'invalid_parameter'

const pollMs = 200

async function makeUnique(attributes: Client['schema']['attributes'], id: number) {
  while ((await attributes.get(id)).index_state?.state === 'filling') await setTimeout(pollMs)
  await attributes.patch(id, { unique: true })
}
