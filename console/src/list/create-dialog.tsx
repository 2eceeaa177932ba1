import { profileFields } from '@kith/client'
import { useState } from 'react'
import { useWrite } from '../app/client.ts'
import { mayUse } from '../app/field-rights.ts'
import { useMessages } from '../app/language.tsx'
import { useNavigateAfter } from '../app/use-navigate-after.ts'
import { KnownPeople } from '../duplicates/known-people.tsx'
import { entityAddress } from '../entity/address.ts'
import { faultTexts } from '../entity/edit-form.tsx'
import { entitiesOf, idOf, type Values } from '../entity/entities.ts'
import { FieldEditors, PlaceholderCheckbox } from '../entity/field-editor.tsx'
import {
  attributeField,
  bodyOf,
  contactIn,
  type Draft,
  draftOf,
  type Field,
  nameOfField,
  parseDraft,
  personField,
  plainFields,
} from '../entity/fields.ts'
import { messages as entityMessages } from '../entity/messages.ts'
import { useDefinitions } from '../entity/schema.ts'
import { FieldGroup } from '../ui/field.tsx'
import { type Faults, FormDialog } from '../ui/form.tsx'
import { messages } from './messages.ts'

const profile = [...plainFields.filter(name => profileFields[name].type === 'text'), 'external_id' as const]

type Given = { body: Values; makesTargets: boolean }

/** Creates a person or a record, and opens its page. */
export default function CreateDialog({ owner, onClose }: { owner: string; onClose(): void }) {
  const texts = useMessages(messages)
  const kind = texts.kinds[owner === 'people' ? 'people' : 'records']
  const entityTexts = useMessages(entityMessages)
  const navigate = useNavigateAfter()
  const { definitions } = useDefinitions()
  const [drafts, setDrafts] = useState<ReadonlyMap<string, Draft>>(new Map())
  const [makesTargets, setMakesTargets] = useState(false)
  const [faults, setFaults] = useState<Faults>()
  const create = useWrite(
    ({ body, makesTargets }: Given, idempotencyKey) =>
      entitiesOf(owner).create(body, { idempotencyKey, ...(!makesTargets && { references: 'strict' }) }),
    {
      refresh: [['entities', owner]],
      onSuccess: created => navigate(entityAddress(owner, { id: idOf(created), externalId: created.external_id })),
    },
  )
  const helps: Partial<Record<string, string>> = { external_id: kind.identifierHelp, language: texts.languageHelp }
  const fields = [
    ...(owner === 'people' ? profile : (['external_id'] as const)).map(name =>
      personField(name, entityTexts.fields, { help: helps[name] }),
    ),
    ...definitions.attributes
      .filter(attribute => attribute.owner === owner && attribute.state === 'active')
      .map(attribute => attributeField(attribute, null)),
  ].filter(field => mayUse('write', owner, nameOfField(field)))
  const draft = (field: Field) => drafts.get(field.path) ?? draftOf(field, null)
  const submit = () => {
    const parsed = fields.map(field => ({ field, ...parseDraft(field, draft(field)) }))
    const found = new Map(parsed.flatMap(({ field, fault }) => (fault ? [[field.path, fault] as const] : [])))
    setFaults(faultTexts(found, entityTexts))
    const given = parsed.filter(({ value }) => value !== null).map(({ field, value }) => [field, value] as const)
    const body = { attribute_values: {}, ...bodyOf(new Map(given)) }
    if (found.size === 0) create.mutate({ body, makesTargets })
  }
  return (
    <FormDialog
      title={kind.create}
      size="wide"
      onSubmit={submit}
      write={create}
      {...(faults && { faults })}
      submit={texts.create}
      onClose={onClose}
    >
      <FieldGroup look="grid">
        <FieldEditors
          fields={fields}
          draftOf={draft}
          onChange={(field, draft) => setDrafts(new Map(drafts).set(field.path, draft))}
        />
      </FieldGroup>
      {owner === 'people' && <KnownPeople {...contactIn(fields, draft)} />}
      <PlaceholderCheckbox fields={fields} isSelected={makesTargets} onChange={setMakesTargets} />
    </FormDialog>
  )
}
