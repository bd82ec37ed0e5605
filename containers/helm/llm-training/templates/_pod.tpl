{{- define "fullname" -}}
{{ default (default .Release.Name .Values.nameOverride) .Values.fullnameOverride | trunc 45 | trimSuffix "-" }}
{{- end }}
{{- define "labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- with .Values.labels }}
{{ toYaml . }}
{{- end }}
{{- end }}
{{- define "image" -}}
{{ .Values.image.repository }}{{ if .Values.image.digest }}@{{ .Values.image.digest }}{{ else }}:{{ .Values.image.tag }}{{ end }}
{{- end }}

{{- /* One pod is one node, which starts a rank for each of its GPUs. No shell: signals and exit codes are those of tycho. */}}
{{- define "pod" -}}
restartPolicy: {{ .restartPolicy }}
terminationGracePeriodSeconds: {{ .root.Values.training.terminationGracePeriodSeconds }}
automountServiceAccountToken: false
{{- if eq .root.Values.training.kind "Job" }}
subdomain: {{ include "fullname" .root }}
{{- end }}
securityContext:
  {{- toYaml .root.Values.securityContext | nindent 2 }}
  runAsNonRoot: true
  seccompProfile: {type: RuntimeDefault}
containers:
  - name: pytorch
    image: {{ include "image" .root | quote }}
    imagePullPolicy: {{ .root.Values.image.pullPolicy }}
    command: [tycho-job]
    args:
      - -n
      - {{ .root.Values.training.gpusPerNode | toString | quote }}
      {{- if .root.Values.cache.copy }}
      - --copy
      {{- end }}
      - {{ if .root.Values.model.recipe }}/recipe/{{ include "fullname" .root }}.lua{{ else }}{{ .root.Values.model.config | quote }}{{ end }}
      {{- range $key, $value := .root.Values.yamlUpdates }}
      - {{ printf "%s=%s" $key (toString $value) | quote }}
      {{- end }}
    workingDir: {{ .root.Values.storage.mount }}
    env:
      - name: TYCHO_TOKEN
        valueFrom: {secretKeyRef: {name: {{ include "fullname" .root }}, key: token}}
      {{- if eq .root.Values.training.kind "Job" }}
      - {name: TYCHO_NODES, value: {{ .root.Values.training.nodes | toString | quote }}}
      - {name: MASTER_ADDR, value: {{ printf "%s-0.%s" (include "fullname" .root) (include "fullname" .root) | quote }}}
      - {name: MASTER_PORT, value: {{ .root.Values.training.port | toString | quote }}}
      {{- end }}
      {{- range $key, $value := .root.Values.env.nccl }}
      - {name: {{ $key }}, value: {{ toString $value | quote }}}
      {{- end }}
      {{- if .root.Values.env.sharp.enabled }}
      - {name: NCCL_COLLNET_ENABLE, value: "1"}
      - {name: NCCL_ALGO, value: "CollnetChain,NVLS"}
      - {name: SHARP_COLL_ENABLE_SAT, value: "1"}
      {{- end }}
    ports:
      - {name: {{ if eq .root.Values.training.kind "Job" }}rendezvous{{ else }}pytorchjob-port{{ end }}, containerPort: {{ .root.Values.training.port }}}
    resources:
      {{- /* Requests are the limits. */}}
      limits:
        {{ .root.Values.resources.gpuResource }}: {{ .root.Values.training.gpusPerNode }}
        {{- with .root.Values.resources.rdmaResource }}
        {{ . }}: {{ $.root.Values.resources.rdmaCount }}
        {{- end }}
        {{- with .root.Values.resources.memory }}
        memory: {{ . }}
        {{- end }}
        {{- with .root.Values.resources.cpu }}
        cpu: {{ . | toString | quote }}
        {{- end }}
    securityContext:
      allowPrivilegeEscalation: false
      readOnlyRootFilesystem: true
      capabilities: {drop: [ALL], add: [IPC_LOCK]}   # RDMA pins memory
    volumeMounts:
      - {name: data, mountPath: {{ .root.Values.storage.mount | quote }}}
      - {name: tmp, mountPath: /tmp}
      - {name: shm, mountPath: /dev/shm}
      {{- if .root.Values.model.recipe }}
      - {name: recipe, mountPath: /recipe}
      {{- end }}
volumes:
  - name: data
    persistentVolumeClaim: {claimName: {{ .root.Values.storage.pvcName | quote }}}
  - name: tmp
    emptyDir: { {{- with .root.Values.cache.sizeLimit }}sizeLimit: {{ . }}{{ end }} }
  - name: shm
    emptyDir: {medium: Memory, sizeLimit: {{ .root.Values.resources.shmSize }}}
  {{- if .root.Values.model.recipe }}
  - name: recipe
    configMap: {name: {{ include "fullname" .root }}}
  {{- end }}
{{- with .root.Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
