import { isKithError } from '@kith/client'
import { useState } from 'react'
import { useScope } from '../app/session.tsx'
import { type Entity, entitiesOf, idOf } from './entities.ts'
import { isEqual } from './equal.ts'
import { bodyOf, type Draft, type DraftFault, draftOf, type Field, parseDraft, storedValue } from './fields.ts'

/** A field that another write changed during the edit. */
export type Conflict = { field: Field; before: unknown; mine: unknown; theirs: unknown; choice?: 'mine' | 'theirs' }

type State = {
  /** The fields as they were when the edit began, so that another write does not change how a field is edited. */
  fields: readonly Field[]
  /** The entity as it was read when the edit began, or at the last conflict. */
  base: Entity
  /** The drafts of the changed fields, by path. */
  drafts: ReadonlyMap<string, Draft>
  /** Whether a target that does not exist becomes a placeholder. */
  makesTargets: boolean
  faults: ReadonlyMap<string, DraftFault>
  conflicts: readonly Conflict[]
  /** The other caller's change that led to the conflicts. It requires the scope `changes:read`. */
  otherChange?: { actor: string; at: string } | undefined
  error: unknown
  isSaving: boolean
}

type EditOptions = { owner: string; entity: Entity; onSaved: ((entity: Entity) => void) | undefined }

/** Concurrent writes of other fields are no conflict. The edit then repeats its write, at most this often. */
const maxRepeats = 3

/**
 * Edits fields of a person or record. The write names the version that was read. If another write came first, fields
 * that only one of the two changed are merged, and the person chooses for the others.
 */
export function useEdit({ owner, entity, onSaved }: EditOptions) {
  const mayReadChanges = useScope('changes:read')
  const [state, setState] = useState<State>()
  const [hasBegun, setHasBegun] = useState(false)
  const entities = entitiesOf(owner)
  const id = idOf(entity)
  const change = (update: (before: State) => Partial<State>) =>
    setState(before => before && { ...before, ...update(before) })

  const finish = (saved?: Entity) => {
    setState(undefined)
    if (saved) onSaved?.(saved)
  }
  const send = async (base: Entity, changes: ReadonlyMap<Field, unknown>, repeats = 0): Promise<void> => {
    if (changes.size === 0) return finish(base === entity ? undefined : base)
    change(() => ({ isSaving: true, error: undefined }))
    try {
      const references = state?.makesTargets ? {} : { references: 'strict' as const }
      const options = { ifMatch: base.version, representation: true, ...references } as const
      finish(await entities.patch({ id }, bodyOf(changes), options))
    } catch (error) {
      if (!isKithError(error) || error.status !== 412 || repeats >= maxRepeats)
        return change(() => ({ error, isSaving: false }))
      await merge(base, changes, repeats)
    }
  }
  const merge = async (base: Entity, changes: ReadonlyMap<Field, unknown>, repeats: number) => {
    try {
      const theirs = await entities.get({ id })
      const open = [...changes].filter(([field, mine]) => !isEqual(storedValue(field, theirs), mine))
      const conflicts = open
        .filter(([field]) => !isEqual(storedValue(field, theirs), storedValue(field, base)))
        .map(([field, mine]) => ({ field, before: storedValue(field, base), mine, theirs: storedValue(field, theirs) }))
      if (conflicts.length === 0) return await send(theirs, new Map(open), repeats + 1)
      const [otherChange] = mayReadChanges ? (await entities.history({ id }, { size: 1 }).page()).items : []
      // A draft that equals the read value is no change, so it must not overwrite concurrent writes.
      const kept = new Set(open.map(([{ path }]) => path))
      change(({ drafts }) => ({
        ...{ base: theirs, conflicts, otherChange, isSaving: false },
        drafts: new Map([...drafts].filter(([path]) => kept.has(path))),
      }))
    } catch (error) {
      change(() => ({ error, isSaving: false }))
    }
  }
  const save = async () => {
    if (!state || state.conflicts.some(({ choice }) => choice === undefined)) return
    const { changes, faults } = changesOf(state)
    change(() => ({ faults }))
    if (faults.size === 0) await send(state.base, changes)
  }
  return {
    /** Undefined unless the entity is being edited. */
    state,
    isDirty: state !== undefined && state.drafts.size > 0,
    /** Whether there was an earlier edit, which had the focus. */
    hasBegun,
    begin: (fields: readonly Field[]) => {
      setHasBegun(true)
      setState({ ...untouched, fields, base: entity })
    },
    cancel: () => setState(undefined),
    add: (field: Field) => change(({ fields }) => ({ fields: [...fields, field] })),
    draft: (field: Field) => state?.drafts.get(field.path) ?? draftOf(field, storedValue(field, state?.base ?? entity)),
    set: (field: Field, draft: Draft) => change(({ drafts }) => ({ drafts: new Map(drafts).set(field.path, draft) })),
    setMakesTargets: (makesTargets: boolean) => change(() => ({ makesTargets })),
    choose: (path: string, choice: 'mine' | 'theirs') =>
      change(({ conflicts }) => ({
        conflicts: conflicts.map(each => (each.field.path === path ? { ...each, choice } : each)),
      })),
    save,
  }
}

export type Edit = ReturnType<typeof useEdit>

const untouched: Omit<State, 'fields' | 'base'> = {
  drafts: new Map(),
  makesTargets: false,
  faults: new Map(),
  conflicts: [],
  error: undefined,
  isSaving: false,
}

/** The values to write, and the invalid drafts. A conflict that was decided for the other write needs no write. */
function changesOf({ fields, base, drafts, conflicts }: State) {
  const given = new Set(conflicts.filter(({ choice }) => choice === 'theirs').map(({ field }) => field.path))
  const changes = new Map<Field, unknown>()
  const faults = new Map<string, DraftFault>()
  for (const field of fields) {
    const draft = drafts.get(field.path)
    const before = storedValue(field, base)
    if (draft === undefined || given.has(field.path) || isEqual(draft, draftOf(field, before))) continue
    const { value, fault } = parseDraft(field, draft, before)
    if (fault) faults.set(field.path, fault)
    else if (!isEqual(value, before)) changes.set(field, value)
  }
  return { changes, faults }
}
