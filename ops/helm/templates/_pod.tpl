{{- define "kith.labels" -}}
app.kubernetes.io/name: kith
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "kith.securityContext" -}}
runAsNonRoot: true
runAsUser: 1000
runAsGroup: 1000
fsGroup: 1000
seccompProfile: { type: RuntimeDefault }
{{- end }}

{{- define "kith.volumes" -}}
- name: tmp
  emptyDir: {}
- name: data
  emptyDir: {}
- name: master-key
  secret:
    secretName: {{ .Values.secrets.masterKey }}
    defaultMode: 0440
{{- end }}

{{- define "kith.container" -}}
image: {{ printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: { drop: [ALL] }
env:
  - name: DATABASE_URL
    valueFrom:
      secretKeyRef: { name: {{ .Values.secrets.database }}, key: url }
  - name: KITH_MASTER_KEY_FILE
    value: /etc/kith/master.key
  {{- range $name, $value := .Values.environment }}
  - name: {{ $name }}
    value: {{ $value | quote }}
  {{- end }}
volumeMounts:
  - { name: tmp, mountPath: /tmp }
  - { name: data, mountPath: /var/lib/kith }
  - { name: master-key, mountPath: /etc/kith, readOnly: true }
{{- end }}
