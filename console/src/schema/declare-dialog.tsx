import { type DeclareBody, declarableTypes, type ObservedKey } from '@kith/client'
import { client } from '../app/client.ts'
import { useMessages } from '../app/language.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { Checkbox, TextField, useDraft } from '../ui/field.tsx'
import { Select } from '../ui/select.tsx'
import { FitResult } from './fit-result.tsx'
import { messages } from './messages.ts'
import { PreviewedForm } from './previewed-form.tsx'

/** The declaration that most of the observed values fit. */
function likelyDeclaration({ key, types }: ObservedKey) {
  const [type] = Object.entries(types).toSorted(([, one], [, other]) => other - one)[0]!
  const isMany = type === 'array'
  const plain = declarableTypes.find(known => known === type) ?? (isMany ? 'text' : 'json')
  return { type: plain, cardinality: isMany ? ('many' as const) : ('one' as const), indexed: false, name: key }
}

type DeclareDialogProps = { owner: string; observed: ObservedKey; onClose: () => void }

/** Declares an observed key, after it has shown which of the stored values would not fit. */
export function DeclareDialog({ owner, observed, onClose }: DeclareDialogProps) {
  const texts = useMessages(messages)
  const { draft, field } = useDraft(() => likelyDeclaration(observed))
  const { key } = observed
  return (
    <Dialog title={texts.declareKey(key)} onClose={onClose}>
      <PreviewedForm
        body={{ owner, key, ...draft, name: draft.name.trim() || key }}
        preview={(body: DeclareBody) => client.schema.declare(body, { dryRun: true })}
        result={declared => <FitResult owner={owner} declared={declared} />}
        save={body => client.schema.declare(body)}
        onSaved={onClose}
        action={texts.declare}
        onCancel={onClose}
      >
        <Select
          label={texts.type}
          options={declarableTypes.map(type => ({ value: type, label: texts.types[type] }))}
          {...field('type')}
        />
        <Select label={texts.values} options={{ one: texts.one, many: texts.many }} {...field('cardinality')} />
        <TextField label={texts.name} {...field('name')} />
        <Checkbox help={texts.indexedHelp} {...field('indexed')}>
          {texts.indexed}
        </Checkbox>
      </PreviewedForm>
    </Dialog>
  )
}
