import type { HoldBody, Person } from '@kith/client'
import { useQuery } from '@tanstack/react-query'
import { client, useWrite } from '../app/client.ts'
import { isUnlimited } from '../app/field-rights.ts'
import { useFormats, useMessages } from '../app/language.tsx'
import { useScope } from '../app/session.tsx'
import { nameOf } from '../entity/address.ts'
import { holdQuery, lifetimesKey } from '../lifetimes/queries.ts'
import { Button } from '../ui/button.tsx'
import { Actions } from '../ui/dialog.tsx'
import { TextField, useDraft } from '../ui/field.tsx'
import { FormDialog } from '../ui/form.tsx'
import { Notice, Problem } from '../ui/page.tsx'
import { rightsMessages } from './rights-messages.ts'

/** The hold of a person, if it exists and the session may see it. */
export function useHold(id: string) {
  const maySee = useScope('people:erase') && isUnlimited()
  return useQuery({ ...holdQuery(id), enabled: maySee }).data ?? undefined
}

/** Shows the hold on the page of a person, and ends it. */
export function HoldNotice({ id }: { id: string }) {
  const texts = useMessages(rightsMessages)
  const formats = useFormats()
  const hold = useHold(id)
  const end = useWrite(() => client.holds.end({ id }), { refresh: [lifetimesKey] })
  if (!hold) return null
  return (
    <Notice kind="caution" title={texts.held}>
      <p>{`${hold.reason} (${hold.actor})`}</p>
      {hold.until !== null && <p>{texts.heldUntil(formats.exactTime(hold.until))}</p>}
      {end.error && <Problem error={end.error} />}
      <Actions>
        <Button onPress={() => end.mutate()} isPending={end.isPending}>
          {texts.endHold}
        </Button>
      </Actions>
    </Notice>
  )
}

/** Holds a person, or changes the hold. */
export function HoldDialog({ id, person, onClose }: { id: string; person: Person | undefined; onClose: () => void }) {
  const texts = useMessages(rightsMessages)
  const hold = useHold(id)
  const { draft, field } = useDraft({ reason: hold?.reason ?? '', until: hold?.until?.slice(0, 10) ?? '' })
  const write = useWrite((body: HoldBody) => client.holds.set({ id }, body), {
    refresh: [lifetimesKey],
    onSuccess: onClose,
  })
  const day = draft.until.trim()
  const submit = () => write.mutate({ reason: draft.reason, until: day === '' ? null : `${day}T00:00:00Z` })
  return (
    <FormDialog
      title={texts.holdTitle(person ? nameOf(person) : id)}
      onSubmit={submit}
      write={write}
      submit={texts.holdNow}
      onClose={onClose}
    >
      <p>{texts.holdAdvice}</p>
      <TextField label={texts.reason} help={texts.holdReasonHelp} isRequired autoFocus {...field('reason')} />
      <TextField label={texts.holdUntil} help={texts.holdUntilHelp} type="date" {...field('until')} />
    </FormDialog>
  )
}
