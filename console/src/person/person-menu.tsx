import type { Person } from '@kith/client'
import { type ReactNode, useState } from 'react'
import { isWhole } from '../app/field-rights.ts'
import { useMessages } from '../app/language.tsx'
import { useSession } from '../app/session.tsx'
import { Menu } from '../ui/menu.tsx'
import { DossierDialog } from './dossier-dialog.tsx'
import { EraseDialog } from './erase-dialog.tsx'
import { HoldDialog } from './hold.tsx'
import { MergeDialog } from './merge-dialog.tsx'
import { PreferenceLinksDialog } from './preference-links-dialog.tsx'
import { rightsMessages } from './rights-messages.ts'

type PersonMenuProps = {
  id: string
  /** Undefined if the person was deleted. */
  person?: Person
  /** The person before the deletion. */
  last?: Person | undefined
  onShow(person: Person): void
  onDelete?: () => void
  /** Shows a message on the page, such as that of a merge with its undo. */
  onNotice(notice: ReactNode): void
}

type Action = 'merge' | 'dossier' | 'links' | 'delete' | 'hold' | 'erase'

/** The scopes that an action takes. An action is shown if the session has all of them. */
const scopesOf: Record<Action, readonly string[]> = {
  merge: ['people:write', 'people:read'],
  links: ['people:write'],
  dossier: ['people:read', 'exports:read', 'consents:read', 'changes:read', 'records:read'],
  delete: ['people:write'],
  hold: ['people:erase'],
  erase: ['people:erase'],
}
const actions = Object.keys(scopesOf) as Action[]
const forDeleted: readonly Action[] = ['dossier', 'hold', 'erase']

/** The actions on a person as a whole. */
export function PersonMenu({ id, person, last, onShow, onDelete, onNotice }: PersonMenuProps) {
  const texts = useMessages(rightsMessages)
  const { scopes } = useSession()
  const [open, setOpen] = useState<Action>()
  const allowed = actions
    .filter(action => scopesOf[action].every(scope => scopes.includes(scope)))
    .filter(action => action === 'delete' || isWhole('people'))
    .filter(action => (person ? action !== 'merge' || person.state === 'active' : forDeleted.includes(action)))
  const close = () => setOpen(undefined)
  const shared = { id, onClose: close }
  if (allowed.length === 0) return null
  return (
    <>
      <Menu
        label={texts.more}
        actions={allowed.map(action => ({
          id: action,
          label: texts[action],
          action: () => (action === 'delete' ? onDelete?.() : setOpen(action)),
        }))}
      >
        {texts.more}
      </Menu>
      {open === 'dossier' && <DossierDialog {...shared} person={person ?? last} />}
      {open === 'hold' && <HoldDialog {...shared} person={person ?? last} />}
      {open === 'erase' && <EraseDialog {...shared} person={person ?? last} />}
      {person && open === 'links' && <PreferenceLinksDialog {...shared} />}
      {person && open === 'merge' && (
        <MergeDialog person={person} onClose={close} onShow={onShow} onNotice={onNotice} />
      )}
    </>
  )
}
